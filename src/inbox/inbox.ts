import type { MaybePromise } from '../core/maybe-promise.ts';
import type { ClaimedJob, NewDelivery } from './delivery.ts';

/** What became of a delivery that was handed in. `revived`: it was known and had died; it is tried again. */
export type Appended = 'stored' | 'duplicate' | 'revived';

/** How an attempt ended. Times are in milliseconds since the epoch. */
export type Outcome =
  | { readonly kind: 'done' }
  | { readonly kind: 'retry'; readonly dueAt: number; readonly error: string }
  | { readonly kind: 'dead'; readonly error: string }
  /** Given back unfinished; the attempt does not count. */
  | { readonly kind: 'released' };

/** What waits to be handled. */
export interface Backlog {
  /** Open jobs, those in hand included. */
  readonly open: number;
  /** When the delivery of the oldest one was received; undefined when there is none. */
  readonly oldestAt: number | undefined;
  readonly dead: number;
}

/**
 * The durable inbox of webhook deliveries, and the jobs that come from them. A claim is a lease: it ends at a time,
 * after which another process may claim the job, and what the first one says afterwards no longer counts.
 * Every method fails with StoreUnavailableError while the store cannot answer.
 */
export interface Inbox {
  /** Stores a delivery and its jobs; resolves only once they are durable. */
  append(delivery: NewDelivery): Promise<Appended>;
  /** Those of `targets` that have a job to claim. */
  due(targets: readonly string[], now: number): MaybePromise<readonly string[]>;
  /** Claims up to `limit` due jobs of a target, oldest first, until `leaseEnd`. */
  claim(
    target: string,
    limit: number,
    owner: string,
    now: number,
    leaseEnd: number,
  ): Promise<readonly ClaimedJob[]>;
  /** Moves the end of the leases that `owner` holds on these jobs. */
  renew(owner: string, jobs: readonly number[], leaseEnd: number): Promise<void>;
  /** Records how an attempt ended; resolves to false when the lease was lost and nothing was recorded. */
  settle(job: ClaimedJob, owner: string, outcome: Outcome, now: number): Promise<boolean>;
  /**
   * Records that this process runs the jobs of `targets`. Those of open jobs that no process has ever run are known
   * from then on, as if one had run them until now.
   */
  attend(targets: readonly string[], now: number): Promise<void>;
  /**
   * Ends as dead what nobody runs: up to `limit` open jobs that have been due since `before`, of targets that no
   * process has attended since. Resolves to the target of each.
   */
  abandon(before: number, limit: number, error: string, now: number): Promise<readonly string[]>;
  backlog(): MaybePromise<Backlog>;
  /**
   * Removes up to `limit` deliveries received before `before` of which nothing is open;
   * with `settledOnly` those that died or had no handler stay. Resolves to how many were removed.
   */
  prune(before: number, limit: number, settledOnly: boolean): Promise<number>;
  /** How much the store holds, in bytes. */
  size(): MaybePromise<number>;
  /** Calls a listener when other processes have work for this one; without it only a look tells. */
  onWork?(listener: () => void): Disposable;
}
