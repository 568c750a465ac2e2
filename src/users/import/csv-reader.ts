import { type CsvColumns, readColumns } from './csv-columns.ts';
import { CsvRecord } from './csv-record.ts';
import { entryOf, invalidUtf8 } from './entry-of.ts';
import { type EntryReader, MAX_LINE, type TakeEntry, tooLong } from './import-entry.ts';
import { ImportError } from './import-error.ts';

/**
 * Reads CSV whose first record names the columns. A record that is malformed fails alone: reading goes on at the next
 * line, so that a quote which nobody closes costs one line.
 */
export class CsvReader implements EntryReader {
  readonly #record = new CsvRecord();
  /** The text so far of a record that has not ended. */
  #begun = '';
  #line = 1;
  #columns: CsvColumns | undefined;
  /** Whether the line cannot be read and its end is waited for. */
  #isSkipping = false;

  push(text: string, take: TakeEntry): void {
    let rest = text;
    let at = 0;
    /** The next quote from `at` on. */
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
      if (end !== undefined && this.#begun.length + end - at <= MAX_LINE) {
        const raw = this.#begun + rest.slice(at, end);
        this.#begun = '';
        this.#takeRecord(this.#record.take(), raw.length, take);
        this.#line += lineFeeds(raw);
        at = end;
        continue;
      }
      this.#begun += rest.slice(at);
      if (typeof read === 'object' && 'wrong' in read) this.#refuse(read.wrong, take);
      else if (this.#begun.length > MAX_LINE) take(tooLong(this.#line));
      else return;
      // What follows the first line of the record is read anew.
      rest = this.#restart();
      at = 0;
      quote = rest.indexOf('"');
    }
  }

  end(take: TakeEntry): void {
    while (this.#begun !== '') {
      const wrong = this.#record.end();
      if (wrong === undefined) {
        this.#takeRecord(this.#record.take(), this.#begun.length, take);
        break;
      }
      this.#refuse(wrong, take);
      this.push(this.#restart(), take);
    }
    if (this.#columns === undefined)
      throw new ImportError('INVALID_IMPORT', 'The first line names no columns');
  }

  /** Gives up the record; its first line is passed over. Returns its text. */
  #restart(): string {
    const text = this.#begun;
    this.#record.reset();
    this.#begun = '';
    this.#isSkipping = true;
    return text;
  }

  /** `length` is that of the record's text, its end included or not. */
  #takeRecord(fields: readonly string[], length: number, take: TakeEntry): void {
    const line = this.#line;
    const [first = ''] = fields;
    // A blank line.
    if (fields.length === 1 && first.trim() === '' && length <= first.length + 2) return;
    if (this.#columns === undefined) {
      this.#columns = readColumns(fields);
      return;
    }
    const { name, email, count } = this.#columns;
    if (length > MAX_LINE) take(tooLong(line));
    else if (!fields.every((field) => field.isWellFormed())) take(invalidUtf8(line));
    else if (fields.length !== count) this.#refuse(`it has ${fields.length} fields, not ${count}`, take);
    else take(entryOf(line, { name: fields[name], email: fields[email] }));
  }

  #refuse(problem: string, take: TakeEntry): void {
    const reason = `The line cannot be read: ${problem}`;
    if (this.#columns === undefined) throw new ImportError('INVALID_IMPORT', reason, this.#line);
    take({ line: this.#line, code: 'MALFORMED_CSV', reason });
  }
}

function splitLine(text: string, start: number, end: number): readonly string[] {
  const isCrLf = end > start && text[end - 1] === '\r';
  return text.slice(start, isCrLf ? end - 1 : end).split(',');
}

function lineFeeds(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count++;
  return count;
}
