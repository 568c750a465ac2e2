import type { MaybePromise } from '../core/maybe-promise.ts';
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

/** Where a page begins: `before` a `seq` with the newest first, or `after` one with the oldest first. */
export type DeliveryCursor = { readonly before: number } | { readonly after: number };

/** A part of a list. */
export interface DeliveryPage {
  readonly items: readonly DeliverySummary[];
  /**
   * The `seq` that the next page begins before or after; undefined when there is none. A page that is short, or
   * empty, can have one: no page looks at more deliveries than can be looked at in a few milliseconds.
   */
  readonly next: number | undefined;
}

/** What people and tools see of the deliveries, and do with them by hand. */
export interface DeliveryLog {
  /** Up to `limit` deliveries; from the newest on when there is no cursor. */
  list(filter: DeliveryFilter, limit: number, cursor?: DeliveryCursor): MaybePromise<DeliveryPage>;
  find(id: string): MaybePromise<DeliveryDetail | undefined>;
  /**
   * Opens those jobs of a delivery again that have a target of `jobs`, each from its first attempt; one that had no
   * jobs gets these. Resolves to false when nothing was opened: there is no such delivery, one of its jobs is open
   * already, or none has such a target.
   */
  replay(id: string, jobs: readonly NewJob[], now: number): Promise<boolean>;
  /** Gives up what is open or dead of a delivery; resolves to false when there is nothing of that kind. */
  discard(id: string, now: number): Promise<boolean>;
}
