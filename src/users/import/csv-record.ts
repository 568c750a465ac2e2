const QUOTE = '"';
/** What ends a field that is not quoted, or may not be in it. */
const BREAK = /[,\n"]/g;

/** What came of a text: where the record ends, what is wrong with it, or that it goes on. */
export type ReadRecord = { readonly end: number } | { readonly wrong: string } | 'incomplete';

/**
 * One record of CSV (RFC 4180) after the other, from a text that comes in pieces. Each character is looked at once,
 * however the text is cut. A record ends with LF or CRLF, or with the text; its fields are separated by commas and may
 * be quoted, with two quotes for one. Nothing is trimmed or converted.
 */
export class CsvRecord {
  #fields: string[] = [];
  /** The field that is being read. */
  #value = '';
  /** Where it is: before a field, inside one, behind a quote in a quoted one, or behind that and a CR. */
  #place: 'before' | 'plain' | 'quoted' | 'quote' | 'cr' = 'before';

  /** Reads on in `text` from `at`. */
  read(text: string, at: number): ReadRecord {
    let i = at;
    while (i < text.length) {
      switch (this.#place) {
        case 'before':
          this.#place = text[i] === QUOTE ? 'quoted' : 'plain';
          if (this.#place === 'quoted') i++;
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
          if (this.#place === 'cr') return { wrong: 'something behind a closing quote' };
          if (c === ',') this.#endField();
          else if (c === '\r') this.#place = 'cr';
          else if (c === QUOTE) {
            this.#value += QUOTE;
            this.#place = 'quoted';
          } else return { wrong: 'something behind a closing quote' };
        }
      }
    }
    return 'incomplete';
  }

  /** The text has ended; says what is wrong with what there is of the record. */
  end(): string | undefined {
    if (this.#place === 'quoted') return 'a quote is not closed';
    if (this.#place === 'plain') this.#endPlain(0);
    else this.#endField();
    return undefined;
  }

  /** The fields of a record that has ended; the next one begins. */
  take(): readonly string[] {
    const fields = this.#fields;
    this.reset();
    return fields;
  }

  /** Begins the next record. */
  reset(): void {
    this.#fields = [];
    this.#value = '';
    this.#place = 'before';
  }

  #endField(): void {
    this.#fields.push(this.#value);
    this.#value = '';
    this.#place = 'before';
  }

  /** The CR of a CRLF is not in the field. */
  #endPlain(end: number): ReadRecord {
    if (this.#value.endsWith('\r')) this.#value = this.#value.slice(0, -1);
    this.#endField();
    return { end };
  }
}
