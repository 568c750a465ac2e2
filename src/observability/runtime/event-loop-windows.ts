import { type EventLoopUtilization, monitorEventLoopDelay, performance } from 'node:perf_hooks';

/** How often the loop is looked at, in milliseconds. */
const RESOLUTION = 20;
const PERCENTILES = [50, 90, 99, 99.9];
const NANOSECONDS = 1e6;

interface Window {
  readonly delay: ReturnType<typeof monitorEventLoopDelay>;
  readonly utilization: EventLoopUtilization;
  readonly since: number;
}

/** What a window measured. */
export interface EventLoopReading {
  /** How long it has lasted, in milliseconds. */
  readonly windowMs: number;
  /** From 0, idle, to 1. */
  readonly utilization: { readonly sinceStart: number; readonly window: number };
  /** In milliseconds. */
  readonly delay: Readonly<Record<string, number>>;
}

/**
 * Measures the event loop over the last one to two minutes: two windows overlap, and the older one is
 * read. Since the start alone, a bad minute would vanish among the good days before it.
 * Disposing of it ends the measuring.
 */
export class EventLoopWindows implements Disposable {
  readonly #timer: NodeJS.Timeout;
  #older = open();
  #newer = this.#older;

  constructor(windowMs = 60_000) {
    this.#timer = setInterval(() => this.#turn(), windowMs).unref();
  }

  /** The older of the two windows. */
  read(): EventLoopReading {
    const { delay, utilization, since } = this.#older;
    const total = performance.eventLoopUtilization();
    const percentiles = PERCENTILES.map((percentile) => [
      `p${String(percentile).replace('.', '')}`,
      late(delay.percentile(percentile)),
    ]);
    return {
      windowMs: Math.round(performance.now() - since),
      utilization: {
        sinceStart: round(total.utilization),
        window: round(performance.eventLoopUtilization(total, utilization).utilization),
      },
      delay: {
        min: late(delay.min),
        mean: delay.count === 0 ? 0 : late(delay.mean),
        max: late(delay.max),
        ...Object.fromEntries(percentiles),
      },
    };
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#older.delay.disable();
    this.#newer.delay.disable();
  }

  #turn(): void {
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

/** What is measured is the time between two looks, so that a loop on time shows the resolution itself. */
function late(nanoseconds: number): number {
  const milliseconds = nanoseconds / NANOSECONDS - RESOLUTION;
  // A histogram that has seen nothing has a minimum beyond any time.
  return milliseconds > 0 && milliseconds < 1e9 ? round(milliseconds) : 0;
}

function round(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
