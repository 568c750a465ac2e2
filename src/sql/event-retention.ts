import type { EventLog } from '../relations/events.ts';

/** Limits on the events of a log. */
export interface EventLimits {
  /** Maximum number of events. */
  readonly max: number;
  /** Maximum age of an event, in milliseconds. */
  readonly maxAge: number;
}

/** Time between two removals, in milliseconds. */
const PRUNE_INTERVAL = 15_000;
/** Maximum number of events removed per write, so that other writes do not wait long. */
const BATCH = 1_000;

/** Removes old events of a log at an interval. */
export class EventRetention implements AsyncDisposable {
  readonly #log: EventLog;
  readonly #limits: EventLimits;
  readonly #timer: NodeJS.Timeout;
  #running: Promise<void> | undefined;
  #closed = false;

  constructor(log: EventLog, limits: EventLimits) {
    this.#log = log;
    this.#limits = limits;
    // If a removal fails, the next one continues.
    this.#timer = setInterval(() => void this.prune().catch(() => {}), PRUNE_INTERVAL).unref();
  }

  /** Removes all events that are due. */
  prune(): Promise<void> {
    this.#running ??= this.#prune().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    await this.#running?.catch(() => {});
  }

  async #prune(): Promise<void> {
    const { max, maxAge } = this.#limits;
    const before = Date.now() - maxAge;
    while (!this.#closed && (await this.#log.prune(max, before, BATCH)));
  }
}
