import type { Inbox } from '../inbox.ts';
import { PeriodicTask } from './periodic-task.ts';

export interface RetentionOptions {
  readonly inbox: Pick<Inbox, 'prune' | 'size'>;
  /** Deliveries without open jobs are removed once they are older than this, in milliseconds; 0: never. */
  readonly maxAge: number;
  /** While the inbox is larger than this, in bytes, the oldest settled deliveries are removed; 0: never. */
  readonly maxBytes: number;
  /** Interval of the removals, in milliseconds; default one minute. */
  readonly interval?: number;
  /** Called with the number of removed deliveries. */
  onPruned(removed: number): void;
  onError(error: unknown): void;
}

/** Deliveries removed per write, so that no other write waits long behind it. */
const BATCH = 500;

/** Removes old deliveries. Open ones are never removed, dead and unhandled ones only by age. */
export class Retention {
  readonly #options: RetentionOptions;
  readonly #task: PeriodicTask;

  constructor(options: RetentionOptions) {
    this.#options = options;
    const { interval = 60_000, onPruned, onError } = options;
    this.#task = new PeriodicTask(interval, () =>
      this.prune(Date.now()).then((removed) => {
        if (removed > 0) onPruned(removed);
      }, onError),
    );
  }

  start(): void {
    this.#task.start();
  }

  /** Resolves once the current batch has ended. */
  stop(): Promise<void> {
    return this.#task.stop();
  }

  /** Removes everything that is due at `now`; resolves to the number of removed deliveries. */
  async prune(now: number): Promise<number> {
    const { inbox, maxAge, maxBytes } = this.#options;
    let removed = 0;
    if (maxAge > 0) removed += await this.#inBatches(() => inbox.prune(now - maxAge, BATCH, false));
    if (maxBytes > 0) {
      removed += await this.#inBatches(async () =>
        (await inbox.size()) > maxBytes ? inbox.prune(now, BATCH, true) : 0,
      );
    }
    return removed;
  }

  async #inBatches(prune: () => Promise<number>): Promise<number> {
    let removed = 0;
    while (!this.#task.stopped) {
      const batch = await prune();
      removed += batch;
      if (batch === 0) break;
    }
    return removed;
  }
}
