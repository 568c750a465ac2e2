import {
  type EntryReader,
  entryOf,
  ImportError,
  invalidUtf8,
  type ReadFields,
  type RecordFormat,
  type TakeEntry,
  tooLong,
} from './import-readers.ts';

/** The fields of a record. An empty one is '' if it was quoted, otherwise undefined. */
type Fields = readonly (string | undefined)[];

/**
 * Reads CSV whose first record names the columns. A malformed record fails alone: reading resumes at the next
 * line, so an unclosed quote costs one line.
 */
export class CsvReader<Row> implements EntryReader<Row> {
  readonly #format: RecordFormat<Row>;
  readonly #record = new CsvRecord();
  /** The text of an incomplete record. */
  #begun = '';
  #line = 1;
  /** Reads the fields of a record; undefined before the header. */
  #read: ReadFields<Row> | undefined;
  /** Number of columns. */
  #count = 0;
  /** Whether to skip the rest of a malformed line. */
  #isSkipping = false;

  constructor(format: RecordFormat<Row>) {
    this.#format = format;
  }

  push(text: string, take: TakeEntry<Row>): void {
    let rest = text;
    const { maxLine } = this.#format;
    let at = 0;
    /** The next quote at or after `at`. */
    let quote = rest.indexOf('"');
    while (at < rest.length) {
      if (this.#isSkipping || this.#begun === '') {
        const lineEnd = rest.indexOf('\n', at);
        if (this.#isSkipping) {
          if (lineEnd === -1) return;
          this.#isSkipping = false;
          this.#line++;
          at = lineEnd + 1;
          continue;
        }
        if (quote !== -1 && quote < at) quote = rest.indexOf('"', at);
        if (lineEnd !== -1 && (quote === -1 || quote > lineEnd)) {
          this.#takeRecord(splitLine(rest, at, lineEnd), lineEnd - at, take);
          this.#line++;
          at = lineEnd + 1;
          continue;
        }
      }
      const read = this.#record.read(rest, at);
      const end = typeof read === 'object' && 'end' in read ? read.end : undefined;
      if (end !== undefined && this.#begun.length + end - at <= maxLine) {
        const raw = this.#begun + rest.slice(at, end);
        this.#begun = '';
        this.#takeRecord(this.#record.take(), raw.length, take);
        this.#line += lineFeeds(raw);
        at = end;
        continue;
      }
      this.#begun += rest.slice(at);
      if (typeof read === 'object' && 'wrong' in read) this.#refuse(read.wrong, take);
      else if (this.#begun.length > maxLine) take(tooLong(this.#line, maxLine));
      else return;
      // The lines after the first line of the record are read again.
      rest = this.#restart();
      at = 0;
      quote = rest.indexOf('"');
    }
  }

  end(take: TakeEntry<Row>): void {
    while (this.#begun !== '') {
      const wrong = this.#record.end();
      if (wrong === undefined) {
        this.#takeRecord(this.#record.take(), this.#begun.length, take);
        break;
      }
      this.#refuse(wrong, take);
      this.push(this.#restart(), take);
    }
    if (this.#read === undefined)
      throw new ImportError('INVALID_IMPORT', 'The first line does not name the columns');
  }

  /** Gives up the record and skips its first line. Returns its text. */
  #restart(): string {
    const text = this.#begun;
    this.#record.reset();
    this.#begun = '';
    this.#isSkipping = true;
    return text;
  }

  /** `length` is the length of the record's text, with or without its line end. */
  #takeRecord(fields: Fields, length: number, take: TakeEntry<Row>): void {
    const line = this.#line;
    if (fields.length === 1 && this.#isBlank(fields[0], length)) return;
    const { maxLine } = this.#format;
    if (this.#read === undefined) {
      this.#count = fields.length;
      this.#read = this.#format.readHeader(fields.map((name = '') => name.trim()));
    } else if (length > maxLine) take(tooLong(line, maxLine));
    else if (!fields.every((field) => field === undefined || field.isWellFormed())) take(invalidUtf8(line));
    else if (fields.length !== this.#count)
      this.#refuse(`it has ${fields.length} fields, not ${this.#count}`, take);
    else take(entryOf(line, this.#read(fields), lengthOf(fields)));
  }

  /** Whether the only field of a record is a blank line. Of one column, blanks are values. */
  #isBlank(field: string | undefined, length: number): boolean {
    if (field === undefined) return true;
    return this.#count !== 1 && field.trim() === '' && length <= field.length + 2;
  }

  #refuse(problem: string, take: TakeEntry<Row>): void {
    const reason = `The line cannot be read: ${problem}`;
    if (this.#read === undefined) throw new ImportError('INVALID_IMPORT', reason, this.#line);
    take({ line: this.#line, code: 'MALFORMED_CSV', reason });
  }
}

function splitLine(text: string, start: number, end: number): Fields {
  const isCrLf = end > start && text[end - 1] === '\r';
  const fields: (string | undefined)[] = text.slice(start, isCrLf ? end - 1 : end).split(',');
  for (let i = 0; i < fields.length; i++) if (fields[i] === '') fields[i] = undefined;
  return fields;
}

/** Length of the fields, which is the same however the text is divided. */
function lengthOf(fields: Fields): number {
  let length = fields.length;
  for (const field of fields) length += field?.length ?? 0;
  return length;
}

function lineFeeds(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count++;
  return count;
}

const QUOTE = '"';
/** Characters that end an unquoted field or are not allowed in it. */
const BREAK = /[,\n"]/g;

/** The result of a read: the end of the record, a syntax error, or more text is needed. */
type Scanned = { readonly end: number } | { readonly wrong: string } | 'incomplete';

/**
 * Reads CSV records (RFC 4180) one after the other from a text in chunks. Scans each character once, however
 * the text is divided. A record ends with LF, CRLF or the end of the text. Fields are separated by commas and
 * may be quoted, with quotes doubled inside. Nothing is trimmed or converted.
 */
class CsvRecord {
  #fields: (string | undefined)[] = [];
  /** The current field. */
  #value = '';
  /** Whether the current field is quoted. */
  #isQuoted = false;
  /**
   * The parser's state: before a field, in an unquoted or quoted one, after a quote in a quoted one, or after
   * that and a CR.
   */
  #place: 'before' | 'plain' | 'quoted' | 'quote' | 'cr' = 'before';

  /** Continues in `text` at `at`. */
  read(text: string, at: number): Scanned {
    let i = at;
    while (i < text.length) {
      switch (this.#place) {
        case 'before':
          this.#isQuoted = text[i] === QUOTE;
          this.#place = this.#isQuoted ? 'quoted' : 'plain';
          if (this.#isQuoted) i++;
          break;
        case 'plain': {
          BREAK.lastIndex = i;
          const found = BREAK.exec(text);
          const end = found === null ? text.length : found.index;
          this.#value += text.slice(i, end);
          if (found === null) return 'incomplete';
          if (found[0] === QUOTE) return { wrong: 'a quote inside a field that does not begin with one' };
          if (found[0] === '\n') return this.#endPlain(end + 1);
          this.#endField();
          i = end + 1;
          break;
        }
        case 'quoted': {
          const found = text.indexOf(QUOTE, i);
          const end = found === -1 ? text.length : found;
          this.#value += text.slice(i, end);
          if (found === -1) return 'incomplete';
          this.#place = 'quote';
          i = end + 1;
          break;
        }
        default: {
          const c = text[i++];
          if (c === '\n') {
            this.#endField();
            return { end: i };
          }
          if (this.#place === 'cr') return { wrong: 'text after a closing quote' };
          if (c === ',') this.#endField();
          else if (c === '\r') this.#place = 'cr';
          else if (c === QUOTE) {
            this.#value += QUOTE;
            this.#place = 'quoted';
          } else return { wrong: 'text after a closing quote' };
        }
      }
    }
    return 'incomplete';
  }

  /** Ends the text; returns the syntax error of the unfinished record, if any. */
  end(): string | undefined {
    if (this.#place === 'quoted') return 'a quote is not closed';
    if (this.#place === 'plain') this.#endPlain(0);
    else this.#endField();
    return undefined;
  }

  /** The fields of the finished record; starts the next one. */
  take(): Fields {
    const fields = this.#fields;
    this.reset();
    return fields;
  }

  /** Starts the next record. */
  reset(): void {
    this.#fields = [];
    this.#value = '';
    this.#isQuoted = false;
    this.#place = 'before';
  }

  #endField(): void {
    this.#fields.push(this.#value === '' && !this.#isQuoted ? undefined : this.#value);
    this.#value = '';
    this.#isQuoted = false;
    this.#place = 'before';
  }

  /** The CR of a CRLF is not part of the field. */
  #endPlain(end: number): Scanned {
    if (this.#value.endsWith('\r')) this.#value = this.#value.slice(0, -1);
    this.#endField();
    return { end };
  }
}
