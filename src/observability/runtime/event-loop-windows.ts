import { type EventLoopUtilization, monitorEventLoopDelay, performance } from 'node:perf_hooks';

/** Sampling interval in milliseconds. */
const RESOLUTION = 20;
const PERCENTILES = [50, 90, 99, 99.9];
const NANOSECONDS = 1e6;

interface Window {
  readonly delay: ReturnType<typeof monitorEventLoopDelay>;
  readonly utilization: EventLoopUtilization;
  readonly since: number;
}

/** The measurements of a window. */
export interface EventLoopReading {
  /** Length of the window in milliseconds. */
  readonly windowMs: number;
  /** From 0, idle, to 1. */
  readonly utilization: { readonly sinceStart: number; readonly window: number };
  /** Minimum, mean, maximum and percentiles in milliseconds. */
  readonly delay: Readonly<Record<string, number>>;
}

/**
 * Measures the event loop over the last one to two minutes, or another window, with two overlapping windows, of which
 * the older one is read. A measurement since the start would hide a bad minute. Disposing of it stops the measurement.
 */
export class EventLoopWindows implements Disposable {
  readonly #timer: NodeJS.Timeout;
  #older = open();
  #newer = this.#older;

  constructor(windowMs = 60_000) {
    this.#timer = setInterval(() => this.#rotate(), windowMs).unref();
  }

  /** The p99 delay of the older window, in milliseconds; undefined in the first window, when the process loads. */
  get p99(): number | undefined {
    return this.#older === this.#newer ? undefined : delayMs(this.#older.delay.percentile(99));
  }

  /** The older of the two windows. */
  read(): EventLoopReading {
    const { delay, utilization, since } = this.#older;
    const total = performance.eventLoopUtilization();
    const percentiles = PERCENTILES.map((percentile) => [
      `p${String(percentile).replace('.', '')}`,
      delayMs(delay.percentile(percentile)),
    ]);
    return {
      windowMs: Math.round(performance.now() - since),
      utilization: {
        sinceStart: round(total.utilization),
        window: round(performance.eventLoopUtilization(total, utilization).utilization),
      },
      delay: {
        min: delayMs(delay.min),
        mean: delay.count === 0 ? 0 : delayMs(delay.mean),
        max: delayMs(delay.max),
        ...Object.fromEntries(percentiles),
      },
    };
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#older.delay.disable();
    this.#newer.delay.disable();
  }

  #rotate(): void {
    if (this.#older !== this.#newer) this.#older.delay.disable();
    this.#older = this.#newer;
    this.#newer = open();
  }
}

function open(): Window {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION });
  delay.enable();
  return { delay, utilization: performance.eventLoopUtilization(), since: performance.now() };
}

/** Subtracts the sampling interval, because the histogram contains the time between two samples. */
function delayMs(nanoseconds: number): number {
  const milliseconds = nanoseconds / NANOSECONDS - RESOLUTION;
  // The minimum of an empty histogram is huge.
  return milliseconds > 0 && milliseconds < 1e9 ? round(milliseconds) : 0;
}

function round(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
