/** Entries kept at most, and their characters. */
const MAX_ENTRIES = 1_000;
const MAX_CHARACTERS = 512 * 1024;

/** One entry of the log: its number since the start, and the line as it was written, one JSON object. */
export interface TailEntry {
  readonly number: number;
  readonly line: string;
}

/** Keeps the last entries of the log, bounded in number and size. */
export class LogTail {
  readonly #entries: TailEntry[] = [];
  #from = 0;
  #number = 0;
  #characters = 0;
  #listener: (() => void) | undefined;

  /** Called after each entry; there is one listener, which has to be quick. */
  set onEntry(listener: (() => void) | undefined) {
    this.#listener = listener;
  }

  /** The number of the latest entry; 0 before the first. */
  get latest(): number {
    return this.#number;
  }

  /** Adds a line and returns it. */
  add(line: string): string {
    this.#entries.push({ number: ++this.#number, line });
    this.#characters += line.length;
    while (this.#entries.length - this.#from > MAX_ENTRIES || this.#characters > MAX_CHARACTERS) this.#drop();
    this.#listener?.();
    return line;
  }

  /** The kept entries with higher numbers, oldest first. */
  after(number: number): readonly TailEntry[] {
    const kept = this.#entries.slice(this.#from);
    return kept.filter((entry) => entry.number > number);
  }

  /** Takes the oldest one away; the array is shortened from time to time, not for each. */
  #drop(): void {
    this.#characters -= this.#entries[this.#from]?.line.length ?? 0;
    this.#from++;
    if (this.#from < MAX_ENTRIES) return;
    this.#entries.splice(0, this.#from);
    this.#from = 0;
  }
}
