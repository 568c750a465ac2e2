/** How long a window is, in milliseconds. */
const WINDOW = 60_000;

/**
 * The windows over which maxima are taken. They are numbered, so that a hot path only compares two
 * numbers and reads no clock. Disposing of it stops the count; it never keeps a process alive.
 */
export class MetricWindow implements Disposable {
  #number = 0;
  readonly #timer = setInterval(() => this.advance(), WINDOW).unref();

  get number(): number {
    return this.#number;
  }

  /** Begins the next window. */
  advance(): void {
    this.#number++;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

/** The largest of the values of this window and the two before, so that one slow start is not shown for ever. */
export class RecentMax {
  readonly #window: MetricWindow;
  #seen: number;
  #current = 0;
  #last = 0;
  #secondLast = 0;

  constructor(window: MetricWindow) {
    this.#window = window;
    this.#seen = window.number;
  }

  /** Takes in a value of 0 or more. */
  record(value: number): void {
    if (this.#seen !== this.#window.number) this.#turn();
    if (value > this.#current) this.#current = value;
  }

  /** 0 when there was no value. */
  get value(): number {
    if (this.#seen !== this.#window.number) this.#turn();
    return Math.max(this.#current, this.#last, this.#secondLast);
  }

  #turn(): void {
    const steps = this.#window.number - this.#seen;
    this.#seen = this.#window.number;
    this.#secondLast = steps === 1 ? this.#last : steps === 2 ? this.#current : 0;
    this.#last = steps === 1 ? this.#current : 0;
    this.#current = 0;
  }
}
