import { monitorEventLoopDelay } from 'node:perf_hooks';

/** How often the loop is looked at, in milliseconds: often enough for what a user feels, for 0.1 % of a core. */
const RESOLUTION = 50;
const NANOSECONDS = 1e6;

/** Measures how late the event loop is with what is due, one window after the other. Disposing of it ends that. */
export class EventLoopDelay implements Disposable {
  readonly #histogram = monitorEventLoopDelay({ resolution: RESOLUTION });
  readonly #timer: NodeJS.Timeout;
  #p99: number | undefined;

  constructor(windowMs = 10_000) {
    this.#histogram.enable();
    this.#timer = setInterval(() => this.nextWindow(), windowMs).unref();
  }

  /** The delay in milliseconds that 99 of 100 looks of the last whole window stayed below; undefined in the first window. */
  get p99(): number | undefined {
    return this.#p99;
  }

  /** Ends a window; the time does that by itself. */
  nextWindow(): void {
    // What is measured is the time between two looks.
    this.#p99 = Math.max(0, this.#histogram.percentile(99) / NANOSECONDS - RESOLUTION);
    this.#histogram.reset();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#histogram.disable();
  }
}
