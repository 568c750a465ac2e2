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

/** Removes old deliveries, at an interval. Open ones are never removed, dead and unhandled ones only by age. */
export function retention(options: RetentionOptions): PeriodicTask {
  const { interval = 60_000, onPruned, onError } = options;
  const task: PeriodicTask = new PeriodicTask(interval, () =>
    prune(options, Date.now(), () => task.stopped).then((removed) => {
      if (removed > 0) onPruned(removed);
    }, onError),
  );
  return task;
}

/** Removes everything that is due at `now`, until `stopped`; resolves to the number of removed deliveries. */
export async function prune(
  { inbox, maxAge, maxBytes }: Pick<RetentionOptions, 'inbox' | 'maxAge' | 'maxBytes'>,
  now: number,
  stopped = () => false,
): Promise<number> {
  let removed = 0;
  const inBatches = async (pruneBatch: () => Promise<number>) => {
    while (!stopped()) {
      const batch = await pruneBatch();
      if (batch === 0) return;
      removed += batch;
    }
  };
  if (maxAge > 0) await inBatches(() => inbox.prune(now - maxAge, BATCH, false));
  if (maxBytes > 0) {
    await inBatches(async () => ((await inbox.size()) > maxBytes ? inbox.prune(now, BATCH, true) : 0));
  }
  return removed;
}
