import type { ClaimedJob } from '../../src/inbox/delivery.ts';
import type { Inbox } from '../../src/inbox/inbox.ts';
import { NOW } from './new-delivery.ts';

/** When the jobs of new deliveries are claimed, and when the leases end. */
export const LATER = NOW + 1_000;
export const LEASE_END = NOW + 5_000;

/** Claims jobs of the target `t`. */
export function claim(inbox: Inbox, limit = 10, owner = 'me', now = LATER): Promise<readonly ClaimedJob[]> {
  return inbox.claim('t', limit, owner, LEASE_END - now, { now });
}

/** The deliveries of jobs by their ids. */
export function ids(jobs: readonly { readonly delivery: { readonly id: string } }[]): readonly string[] {
  return jobs.map(({ delivery: { id } }) => id);
}
