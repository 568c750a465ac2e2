const SLICE = 4;

interface Waiting {
  /** Who waits longest goes first when there is too much text. */
  readonly since: number;
  readonly go: () => void;
}

/**
 * The turns that long operations of a door take. In each turn of the event loop one of them goes on, so however many
 * there are, others wait for one slice. When their text has reached the bound, only the eldest goes on until it is done.
 */
export class CooperativeScheduler {
  readonly #maxHeld: number;
  readonly #waiting: Waiting[] = [];
  #held = 0;
  #isScheduled = false;

  /** The longest time that a run holds the event loop for, in milliseconds. */
  readonly slice: number;

  /** `maxHeld`: bytes of text that unfinished results may hold altogether. */
  constructor(maxHeld: number, slice = SLICE) {
    this.#maxHeld = maxHeld;
    this.slice = slice;
  }

  /** Bytes of text that unfinished results hold. */
  get held(): number {
    return this.#held;
  }

  /** Whether that is more than they may, so that only the eldest goes on. */
  get isFull(): boolean {
    return this.#held > this.#maxHeld;
  }

  /** Resolves when the caller may go on; `since` tells who came first. */
  next(since: number): Promise<void> {
    return new Promise((go) => {
      this.#waiting.push({ since, go });
      this.#schedule();
    });
  }

  hold(bytes: number): void {
    this.#held += bytes;
  }

  release(bytes: number): void {
    this.#held -= bytes;
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.length === 0) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      const index = this.isFull ? this.#eldest() : 0;
      const [chosen] = this.#waiting.splice(index, 1);
      chosen?.go();
      this.#schedule();
    });
  }

  #eldest(): number {
    let index = 0;
    for (const [i, { since }] of this.#waiting.entries()) {
      if (since < (this.#waiting[index]?.since ?? since)) index = i;
    }
    return index;
  }
}
