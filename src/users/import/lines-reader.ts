import { entryOfJson } from './entry-of.ts';
import { type EntryReader, MAX_LINE, type TakeEntry, tooLong } from './import-entry.ts';

/** Reads NDJSON: a JSON object per line. Blank lines count and are passed over. */
export class LinesReader implements EntryReader {
  /** The beginning of a line whose end has not come. */
  #begun = '';
  #line = 1;
  /** Whether the line is too long and its end is waited for. */
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
