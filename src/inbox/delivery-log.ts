import type { MaybePromise } from '../users/maybe-promise.ts';
import type { NewJob, StoredDelivery } from './delivery.ts';

/**
 * Where a delivery stands, from its jobs: `unhandled` has none, `processing` has one in hand, `pending` one that
 * waits, `dead` one that was given up; else all are `done`, or `discarded` by hand.
 */
export const DELIVERY_STATUSES = ['unhandled', 'processing', 'pending', 'dead', 'done', 'discarded'] as const;

export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** A delivery in a list. Times are in milliseconds since the epoch. */
export interface DeliverySummary {
  readonly seq: number;
  readonly id: string;
  readonly source: string;
  readonly event: string | null;
  readonly status: DeliveryStatus;
  readonly receivedAt: number;
  /** Of all its jobs together. */
  readonly attempts: number;
  /** Length of the body in bytes. */
  readonly size: number;
}

/** One job of a delivery. */
export interface JobDetail {
  readonly target: string;
  readonly status: 'pending' | 'processing' | 'done' | 'dead' | 'discarded';
  readonly attempts: number;
  readonly dueAt: number;
  readonly error: string | null;
  readonly finishedAt: number | null;
}

export interface DeliveryDetail extends DeliverySummary, StoredDelivery {
  readonly jobs: readonly JobDetail[];
}

/** Which deliveries are meant; all conditions must hold. */
export interface DeliveryFilter {
  readonly status?: DeliveryStatus;
  readonly event?: string;
  readonly source?: string;
  /** Received at or after, in milliseconds since the epoch. */
  readonly since?: number;
  /** Received before. */
  readonly until?: number;
}

/** What people and tools see of the deliveries, and do with them by hand. */
export interface DeliveryLog {
  /** Up to `limit` deliveries, the newest first, with a `seq` below `before` (the keyset cursor). */
  list(filter: DeliveryFilter, limit: number, before?: number): MaybePromise<readonly DeliverySummary[]>;
  find(id: string): MaybePromise<DeliveryDetail | undefined>;
  count(filter: DeliveryFilter): MaybePromise<number>;
  /**
   * Opens the jobs of a delivery again, from its first attempt; one that had none gets those that are given.
   * Resolves to false when there is no such delivery, or one of its jobs is open.
   */
  replay(id: string, jobs: readonly NewJob[], now: number): Promise<boolean>;
  /** Gives up what is open or dead of a delivery; resolves to false when there is nothing of that kind. */
  discard(id: string, now: number): Promise<boolean>;
}
