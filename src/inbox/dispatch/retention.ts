import { setTimeout as delay } from 'node:timers/promises';
import type { Inbox, PruneRule, PruneStep } from '../inbox.ts';
import { PeriodicTask } from './periodic-task.ts';

interface RetentionOptions {
  readonly inbox: Pick<Inbox, 'prune' | 'forgetKeys'>;
  /**
   * Deliveries are removed this long after their last job ended or, without jobs, after receipt; in ms. 0:
   * never.
   */
  readonly maxAge: number;
  /** Above this many bytes settled deliveries are removed, those that ended first first; 0: never. */
  readonly maxBytes: number;
  /** How long dedup keys of removed deliveries are remembered after receipt, in milliseconds; 0: not. */
  readonly dedupAge: number;
  /** Interval of the removals in milliseconds. Default: one minute. */
  readonly interval?: number;
  /** Called with the number of removed deliveries. */
  onPruned(removed: number): void;
  onError(error: unknown): void;
}

/**
 * Deliveries that ended within this time stay even if the inbox is too large, in milliseconds. Commits in
 * progress, and replicas with other clocks, may still add entries that ended before the last one of a step.
 */
const SETTLING = 60_000;
/** Maximum number of remembered dedup keys: about 200 MB. */
const MAX_KEYS = 1_000_000;
/** Pause between two steps in milliseconds, which lets other writes go first. */
const PAUSE = 4;

/** Removes old deliveries at an interval; open ones never, dead and unhandled ones only by age. */
export function retention(options: RetentionOptions): PeriodicTask {
  const { interval = 60_000, onPruned, onError } = options;
  const task: PeriodicTask = new PeriodicTask(interval, () =>
    prune(options, Date.now(), () => task.stopped).then((removed) => {
      if (removed > 0) onPruned(removed);
    }, onError),
  );
  return task;
}

/** Removes all deliveries due at `now`, until `stopped`; resolves to the number of removed deliveries. */
export async function prune(
  { inbox, maxAge, maxBytes, dedupAge }: Pick<RetentionOptions, 'inbox' | 'maxAge' | 'maxBytes' | 'dedupAge'>,
  now: number,
  stopped = () => false,
): Promise<number> {
  const rules: PruneRule[] = [];
  const before = now - maxAge;
  const remember = dedupAge === 0 ? undefined : now - dedupAge;
  // The order matters: after removals by another rule, a step would skip as many dead entries of an index.
  if (maxAge > 0) rules.push({ kind: 'unhandled', before, now }, { kind: 'ended', before, remember });
  if (maxBytes > 0) rules.push({ kind: 'excess', before: now - SETTLING, maxBytes, remember });
  let removed = 0;
  for (const rule of rules) removed += await takeSteps(() => inbox.prune(rule), stopped);
  await takeSteps(() => inbox.forgetKeys(remember ?? Number.MAX_SAFE_INTEGER, MAX_KEYS), stopped);
  return removed;
}

/** Runs steps up to the last one; resolves to the number of removed deliveries. */
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
