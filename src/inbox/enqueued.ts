import type { MaybePromise } from '../core/maybe-promise.ts';
import type { NewDelivery } from './delivery.ts';
import type { Appended } from './inbox.ts';

/** What a program has enqueued in a transaction of its own that is committed. */
export interface Enqueued {
  /** Its number among the enqueued ones. */
  readonly seq: number;
  readonly id: string;
  readonly source: string;
  readonly event: string;
  readonly body: Uint8Array;
  /** Milliseconds since the epoch. */
  readonly receivedAt: number;
  readonly dedupKey: string | null;
}

/** An enqueued delivery with the jobs that it gets. */
export interface TakenDelivery {
  readonly seq: number;
  readonly delivery: NewDelivery;
}

/** What programs have enqueued and no service has taken in yet. Fails with StoreUnavailableError. */
export interface EnqueuedDeliveries {
  /** The oldest ones, a bounded number of bounded size. */
  oldest(): MaybePromise<readonly Enqueued[]>;
  /** Makes them deliveries; undefined for one that another process has taken. */
  take(taken: readonly TakenDelivery[]): Promise<readonly (Appended | undefined)[]>;
  /** Calls a listener when something may have been enqueued; absent where the engine cannot tell. */
  onEnqueued?(listener: () => void): Disposable;
}
