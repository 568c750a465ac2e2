import { type CsvColumns, readColumns } from './csv-columns.ts';
import { readCsvRecord } from './csv-record.ts';
import { entryOf, invalidUtf8 } from './entry-of.ts';
import { type EntryReader, MAX_LINE, type TakeEntry, tooLong } from './import-entry.ts';
import { ImportError } from './import-error.ts';

/**
 * Reads CSV whose first record names the columns. A record that is malformed fails alone: reading goes on at the next
 * line, so that a quote which nobody closes costs one line.
 */
export class CsvReader implements EntryReader {
  #text = '';
  #line = 1;
  #columns: CsvColumns | undefined;
  /** Whether the line is too long and its end is waited for. */
  #isSkipping = false;

  push(text: string, take: TakeEntry): void {
    this.#text += text;
    this.#read(take, false);
  }

  end(take: TakeEntry): void {
    this.#read(take, true);
    if (this.#columns === undefined)
      throw new ImportError('INVALID_IMPORT', 'The first line names no columns');
  }

  #read(take: TakeEntry, isLast: boolean): void {
    const text = this.#text;
    let at = 0;
    /** The next quote from `at` on. */
    let quote = text.indexOf('"');
    while (at < text.length) {
      const lineEnd = text.indexOf('\n', at);
      if (this.#isSkipping) {
        if (lineEnd === -1) {
          at = text.length;
          break;
        }
        this.#isSkipping = false;
        this.#line++;
        at = lineEnd + 1;
        continue;
      }
      if (quote !== -1 && quote < at) quote = text.indexOf('"', at);
      const end = lineEnd === -1 ? text.length : lineEnd;
      if (quote === -1 || quote >= end) {
        if (lineEnd === -1 && !isLast) break;
        this.#takeRecord(splitLine(text, at, end), text, at, end, take);
        this.#line++;
        at = end + 1;
        continue;
      }
      const record = readCsvRecord(text, at, isLast);
      if (record === 'incomplete') {
        if (text.length - at <= MAX_LINE) break;
        take(tooLong(this.#line));
      } else if ('wrong' in record) this.#refuse(record.wrong, take);
      else {
        this.#takeRecord(record.fields, text, at, record.end, take);
        this.#line += lineFeeds(text, at, record.end);
        at = record.end;
        continue;
      }
      this.#isSkipping = true;
    }
    this.#text = text.slice(at);
    if (this.#isSkipping || this.#text.length <= MAX_LINE) return;
    take(tooLong(this.#line));
    this.#text = '';
    this.#isSkipping = true;
  }

  #takeRecord(fields: readonly string[], text: string, start: number, end: number, take: TakeEntry): void {
    const line = this.#line;
    const [first = ''] = fields;
    // A blank line.
    if (fields.length === 1 && first.trim() === '' && end - start <= first.length + 2) return;
    if (this.#columns === undefined) {
      this.#columns = readColumns(fields);
      return;
    }
    const { name, email, count } = this.#columns;
    if (end - start > MAX_LINE) take(tooLong(line));
    else if (!text.slice(start, end).isWellFormed()) take(invalidUtf8(line));
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

function lineFeeds(text: string, start: number, end: number): number {
  let count = 0;
  for (let at = text.indexOf('\n', start); at !== -1 && at < end; at = text.indexOf('\n', at + 1)) count++;
  return count;
}
