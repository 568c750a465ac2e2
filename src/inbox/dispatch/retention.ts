import { setTimeout as delay } from 'node:timers/promises';
import type { Inbox } from '../inbox.ts';
import type { PruneRule } from '../prune.ts';
import { PeriodicTask } from './periodic-task.ts';

export interface RetentionOptions {
  readonly inbox: Pick<Inbox, 'prune'>;
  /** Deliveries are removed this long after their last job has ended, or after their receipt without jobs; 0: never. */
  readonly maxAge: number;
  /** While the inbox is larger than this, in bytes, the settled deliveries are removed that ended first; 0: never. */
  readonly maxBytes: number;
  /** Interval of the removals, in milliseconds; default one minute. */
  readonly interval?: number;
  /** Called with the number of removed deliveries. */
  onPruned(removed: number): void;
  onError(error: unknown): void;
}

/**
 * Too large an inbox keeps what has ended within this time, in milliseconds: replicas whose clocks differ, and commits
 * under way, may still add something that ended before the last entry of a step.
 */
export const SETTLING = 60_000;
/** Pause between two steps, in milliseconds: other writes come first. */
const PAUSE = 4;

/** Removes old deliveries, at an interval. Open ones are never removed, dead and unhandled ones only by age. */
export function retention(options: RetentionOptions): PeriodicTask {
  const { interval = 60_000, onPruned, onError } = options;
  const task = new PeriodicTask(interval, () =>
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
  const rules: PruneRule[] = [];
  const before = now - maxAge;
  if (maxAge > 0) rules.push({ kind: 'ended', before }, { kind: 'unhandled', before, now });
  if (maxBytes > 0) rules.push({ kind: 'excess', before: now - SETTLING, maxBytes });
  let removed = 0;
  for (const rule of rules) {
    while (!stopped()) {
      const step = await inbox.prune(rule);
      removed += step.removed;
      if (step.isLast) break;
      await delay(PAUSE);
    }
  }
  return removed;
}
