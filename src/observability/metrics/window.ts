/** Length of a window in milliseconds. */
const WINDOW = 60_000;

/**
 * Counts the time windows of maxima, so that a hot path compares two numbers instead of reading the clock. Its timer does
 * not keep the process alive.
 */
export class MetricWindow implements Disposable {
  #number = 0;
  readonly #timer = setInterval(() => this.advance(), WINDOW).unref();

  get number(): number {
    return this.#number;
  }

  /** Starts the next window. */
  advance(): void {
    this.#number++;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

/** The maximum over this window and the two before it, so that old outliers are forgotten. */
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

  /** Records a value, 0 or more. */
  record(value: number): void {
    if (this.#seen !== this.#window.number) this.#advance();
    if (value > this.#current) this.#current = value;
  }

  /** 0 without values. */
  get value(): number {
    if (this.#seen !== this.#window.number) this.#advance();
    return Math.max(this.#current, this.#last, this.#secondLast);
  }

  #advance(): void {
    const steps = this.#window.number - this.#seen;
    this.#seen = this.#window.number;
    this.#secondLast = steps === 1 ? this.#last : steps === 2 ? this.#current : 0;
    this.#last = steps === 1 ? this.#current : 0;
    this.#current = 0;
  }
}
