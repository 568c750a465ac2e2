import { monitorEventLoopDelay } from 'node:perf_hooks';

/** Sampling interval in milliseconds: fine enough for delays that users notice, at 0.1 % of a core. */
const RESOLUTION = 50;
const NANOSECONDS = 1e6;

/** Measures the delay of the event loop in consecutive windows, until it is disposed of. */
export class EventLoopDelay implements Disposable {
  readonly #histogram = monitorEventLoopDelay({ resolution: RESOLUTION });
  readonly #timer: NodeJS.Timeout;
  #p99: number | undefined;

  constructor(windowMs = 10_000) {
    this.#histogram.enable();
    this.#timer = setInterval(() => this.nextWindow(), windowMs).unref();
  }

  /** The p99 delay of the last complete window, in milliseconds; undefined in the first window. */
  get p99(): number | undefined {
    return this.#p99;
  }

  /** Ends the current window; a timer calls this, and tests. */
  nextWindow(): void {
    // The histogram contains the time between two samples.
    this.#p99 = Math.max(0, this.#histogram.percentile(99) / NANOSECONDS - RESOLUTION);
    this.#histogram.reset();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#histogram.disable();
  }
}
