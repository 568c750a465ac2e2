import type { Inbox } from './inbox.ts';
import { Rounds } from './rounds.ts';

export interface RetentionOptions {
  readonly inbox: Inbox;
  /** Deliveries of which nothing is open are removed when they are older than this, in milliseconds; 0: never. */
  readonly maxAge: number;
  /** While the store is larger than this many bytes the oldest deliveries that are done are removed; 0: never. */
  readonly maxBytes: number;
  /** How often to look, in milliseconds; default one minute. */
  readonly interval?: number;
  /** Told of each removal and of what went wrong. */
  onPruned(removed: number): void;
  onError(error: unknown): void;
}

/** Removed in one write, so that nobody waits long behind it. */
const BATCH = 500;

/** Removes what is old, or too much, of the inbox. What is open is never removed; what died only by age. */
export class Retention {
  readonly #options: RetentionOptions;
  readonly #rounds: Rounds;

  constructor(options: RetentionOptions) {
    this.#options = options;
    const { interval = 60_000, onPruned, onError } = options;
    this.#rounds = new Rounds(interval, () =>
      this.prune(Date.now()).then((removed) => {
        if (removed > 0) onPruned(removed);
      }, onError),
    );
  }

  start(): void {
    this.#rounds.start();
  }

  /** Ends after the batch that is under way. */
  stop(): Promise<void> {
    return this.#rounds.stop();
  }

  /** Removes all that is due now; resolves to how many deliveries that were. */
  async prune(now: number): Promise<number> {
    const { inbox, maxAge, maxBytes } = this.#options;
    let removed = 0;
    if (maxAge > 0) removed += await this.#batches(() => inbox.prune(now - maxAge, BATCH, false));
    if (maxBytes > 0) {
      removed += await this.#batches(async () =>
        (await inbox.size()) > maxBytes ? inbox.prune(now, BATCH, true) : 0,
      );
    }
    return removed;
  }

  async #batches(prune: () => Promise<number>): Promise<number> {
    let removed = 0;
    while (!this.#rounds.stopped) {
      const batch = await prune();
      removed += batch;
      if (batch === 0) break;
    }
    return removed;
  }
}
