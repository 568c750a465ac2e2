import { setTimeout as delay } from 'node:timers/promises';
import type { Inbox } from '../inbox.ts';
import type { PruneRule, PruneStep } from '../prune.ts';
import { PeriodicTask } from './periodic-task.ts';

interface RetentionOptions {
  readonly inbox: Pick<Inbox, 'prune' | 'forgetKeys'>;
  /** Deliveries are removed this long after their last job has ended, or after their receipt without jobs; 0: never. */
  readonly maxAge: number;
  /** While the inbox is larger than this, in bytes, the settled deliveries are removed that ended first; 0: never. */
  readonly maxBytes: number;
  /** Dedup keys of removed deliveries are remembered for this long after the receipt, in milliseconds; 0: not at all. */
  readonly dedupAge: number;
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
/** Maximum number of remembered dedup keys: some 200 MB. */
const MAX_KEYS = 1_000_000;
/** Pause between two steps, in milliseconds: other writes come first. */
const PAUSE = 4;

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
  { inbox, maxAge, maxBytes, dedupAge }: Pick<RetentionOptions, 'inbox' | 'maxAge' | 'maxBytes' | 'dedupAge'>,
  now: number,
  stopped = () => false,
): Promise<number> {
  const rules: PruneRule[] = [];
  const before = now - maxAge;
  const remember = dedupAge === 0 ? undefined : now - dedupAge;
  // In this order: behind what another rule has removed, a step would pass over as many entries of an index.
  if (maxAge > 0) rules.push({ kind: 'unhandled', before, now }, { kind: 'ended', before, remember });
  if (maxBytes > 0) rules.push({ kind: 'excess', before: now - SETTLING, maxBytes, remember });
  let removed = 0;
  for (const rule of rules) removed += await takeSteps(() => inbox.prune(rule), stopped);
  await takeSteps(() => inbox.forgetKeys(remember ?? Number.MAX_SAFE_INTEGER, MAX_KEYS), stopped);
  return removed;
}

/** Takes steps to the last one; resolves to how much they have removed. */
async function takeSteps(step: () => Promise<PruneStep>, stopped: () => boolean): Promise<number> {
  let removed = 0;
  while (!stopped()) {
    const taken = await step();
    removed += taken.removed;
    if (taken.isLast) break;
    await delay(PAUSE);
  }
  return removed;
}
