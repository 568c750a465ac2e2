import type { NewJob } from '../../../inbox/delivery.ts';
import { PRIORITY_LEVEL } from '../../../inbox/priority.ts';
import { storedKey } from '../../stored-key.ts';

/** Jobs as a JSON array of `[target, order_key]`, for the statements that insert or reopen them. */
export function jobsJson(jobs: readonly NewJob[]): string {
  return JSON.stringify(jobs.map(({ target, orderKey }) => [target, storedKey(orderKey)]));
}

/**
 * Jobs that may have a time, a priority and a key, as `[target, order_key, due_at, run_at, priority]`. `now` is when jobs
 * without a time are due; `ahead` is how far the clock of the store is ahead of that of the system, in milliseconds.
 */
export function ruledJobsJson(jobs: readonly NewJob[], now: number, ahead: number): string {
  return JSON.stringify(
    jobs.map(({ target, orderKey, runAt, priority = 0 }) => {
      const dueAt = runAt === undefined ? now - priority * PRIORITY_LEVEL : runAt + ahead;
      return [target, storedKey(orderKey), dueAt, runAt ?? null, priority];
    }),
  );
}
