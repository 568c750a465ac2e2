import type { NewJob } from '../../../inbox/delivery.ts';
import { storedKey } from '../../stored-key.ts';

/** Jobs as a JSON array of `[target, order_key]`, for the statements that insert or reopen them. */
export function jobsJson(jobs: readonly NewJob[]): string {
  return JSON.stringify(jobs.map(({ target, orderKey }) => [target, storedKey(orderKey)]));
}
