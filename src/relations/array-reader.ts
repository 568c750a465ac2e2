import { entryOfJson } from './import-position.ts';
import { type EntryReader, ImportError, MAX_LINE, type TakeEntry, tooLong } from './import-readers.ts';

/** Reads NDJSON: a JSON object per line. Blank lines are counted and skipped. */
export class LinesReader implements EntryReader {
  /** The beginning of an incomplete line. */
  #begun = '';
  #line = 1;
  /** Whether to skip the rest of a line that is too long. */
  #isSkipping = false;

  push(text: string, take: TakeEntry): void {
    let start = 0;
    for (;;) {
      const end = text.indexOf('\n', start);
      if (end === -1) break;
      this.#endLine(text.slice(start, end), take);
      start = end + 1;
    }
    if (this.#isSkipping) return;
    this.#begun += text.slice(start);
    if (this.#begun.length <= MAX_LINE) return;
    take(tooLong(this.#line));
    this.#begun = '';
    this.#isSkipping = true;
  }

  end(take: TakeEntry): void {
    this.#endLine('', take);
  }

  #endLine(rest: string, take: TakeEntry): void {
    const text = this.#begun === '' ? rest : this.#begun + rest;
    const isSkipped = this.#isSkipping;
    const line = this.#line++;
    this.#begun = '';
    this.#isSkipping = false;
    if (isSkipped) return;
    if (text.length > MAX_LINE) take(tooLong(line));
    else if (text.trim() !== '') take(entryOfJson(line, text));
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const CLOSING_BRACKET = 0x5d;

/** Reads the elements of a JSON array. A malformed element fails alone if its brackets are balanced. */
export class ArrayReader implements EntryReader {
  /** Text that is not an element yet. */
  #text = '';
  /** How far `#text` has been scanned. */
  #at = 0;
  #depth = 0;
  #inString = false;
  #nth = 1;
  #state: 'before' | 'inside' | 'behind' = 'before';

  push(text: string, take: TakeEntry): void {
    this.#text += text;
    if (this.#state === 'before') this.#open();
    if (this.#state === 'inside') this.#read(take);
    if (this.#state === 'behind') this.#close();
  }

  end(_take: TakeEntry): void {
    if (this.#state !== 'behind') throw broken('the array does not end', this.#nth);
  }

  #open(): void {
    const begun = this.#text.trimStart();
    this.#text = begun;
    if (begun === '') return;
    if (!begun.startsWith('[')) throw broken('it is not a JSON array of users');
    this.#text = begun.slice(1);
    this.#state = 'inside';
  }

  #close(): void {
    if (this.#text.trim() !== '') throw broken('there is text after the array', this.#nth);
    this.#text = '';
  }

  #read(take: TakeEntry): void {
    const text = this.#text;
    let start = 0;
    let i = this.#at;
    for (; i < text.length; i++) {
      const c = text.charCodeAt(i);
      if (this.#inString) {
        if (c === BACKSLASH) i++;
        else if (c === QUOTE) this.#inString = false;
      } else if (c === QUOTE) this.#inString = true;
      else if (c === 0x7b || c === 0x5b) this.#depth++;
      else if (this.#depth > 0) {
        if (c === 0x7d || c === CLOSING_BRACKET) this.#depth--;
      } else if (c === COMMA || c === CLOSING_BRACKET) {
        this.#take(text.slice(start, i), c === CLOSING_BRACKET, take);
        start = i + 1;
        if (c === CLOSING_BRACKET) {
          this.#state = 'behind';
          break;
        }
      }
    }
    this.#text = text.slice(start);
    // A chunk may end after the backslash of an escape; scanning then resumes in the next chunk.
    this.#at = i - start;
    if (this.#state === 'inside' && this.#text.length > MAX_LINE) {
      throw new ImportError(
        'LINE_TOO_LONG',
        `An element is longer than ${MAX_LINE} characters, or not closed`,
        this.#nth,
      );
    }
  }

  #take(element: string, isLast: boolean, take: TakeEntry): void {
    // Only an empty array has nothing before its end.
    if (isLast && this.#nth === 1 && element.trim() === '') return;
    take(entryOfJson(this.#nth++, element));
  }
}

function broken(what: string, line?: number): ImportError {
  return new ImportError('INVALID_IMPORT', `The import cannot be read: ${what}`, line);
}
