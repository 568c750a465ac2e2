/** A record of CSV (RFC 4180): its fields, and where the next one begins. */
export interface CsvRecord {
  readonly fields: readonly string[];
  readonly end: number;
}

/** Why no record was read: more text is needed, or what is wrong with it. */
export type NoRecord = 'incomplete' | { readonly wrong: string };

const QUOTE = '"';

/**
 * Reads the record that begins at `start`. It ends with LF or CRLF, or with the text if that `isLast`; the fields are
 * separated by commas and may be quoted, with two quotes for one. Nothing is trimmed or converted.
 */
export function readCsvRecord(text: string, start: number, isLast: boolean): CsvRecord | NoRecord {
  const fields: string[] = [];
  for (let at = start; ; ) {
    const field = text[at] === QUOTE ? readQuoted(text, at, isLast) : readPlain(text, at, isLast);
    if (!('end' in Object(field))) return field as NoRecord;
    const { value, end } = field as Field;
    fields.push(value);
    if (text[end] === ',') at = end + 1;
    else return { fields, end: Math.min(text.length, end + 1) };
  }
}

/** A field, and where the comma or the line feed behind it is. */
interface Field {
  readonly value: string;
  readonly end: number;
}

function readPlain(text: string, start: number, isLast: boolean): Field | NoRecord {
  let end = start;
  for (; end < text.length; end++) {
    const c = text[end];
    if (c === ',' || c === '\n') break;
    if (c === QUOTE) return { wrong: 'a quote inside a field that does not begin with one' };
  }
  if (end === text.length && !isLast) return 'incomplete';
  const isCrLf = text[end] !== ',' && end > start && text[end - 1] === '\r';
  return { value: text.slice(start, isCrLf ? end - 1 : end), end };
}

function readQuoted(text: string, start: number, isLast: boolean): Field | NoRecord {
  let value = '';
  for (let from = start + 1; ; ) {
    const quote = text.indexOf(QUOTE, from);
    if (quote === -1) return isLast ? { wrong: 'a quote is not closed' } : 'incomplete';
    if (text[quote + 1] === QUOTE) {
      value += text.slice(from, quote + 1);
      from = quote + 2;
      continue;
    }
    value += text.slice(from, quote);
    const end = text[quote + 1] === '\r' ? quote + 2 : quote + 1;
    // What comes next may be a second quote, or the rest of a CRLF.
    if (end >= text.length) return isLast ? { value, end: text.length } : 'incomplete';
    if (text[end] === '\n' || (text[end] === ',' && end === quote + 1)) return { value, end };
    return { wrong: 'something behind a closing quote' };
  }
}
