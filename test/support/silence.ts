/** Into so many parts a silence is divided, of which a held event loop takes one at most. */
const PARTS = 8;

/** Tells when nothing has come for a while. Time in which this process could not read counts little. */
export class Silence {
  readonly #timer: NodeJS.Timeout;
  #left = PARTS;

  /** Calls `end` once, after `ms` milliseconds without a `broken()`, or never after `stop()`. */
  constructor(ms: number, end: () => void) {
    this.#timer = setInterval(() => {
      if (--this.#left > 0) return;
      this.stop();
      end();
    }, ms / PARTS);
  }

  /** Something came: the silence begins again. */
  broken(): void {
    this.#left = PARTS;
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
