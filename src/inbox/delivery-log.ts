import type { MaybePromise } from '../core/maybe-promise.ts';
import type { AttemptEntry } from './attempts.ts';
import type { NewJob, StoredDelivery } from './delivery.ts';

/**
 * The status of a delivery, derived from its jobs: `unhandled` has none, `processing` a leased one, `pending` an open
 * one, `dead` a dead one; otherwise all are `done`, or `discarded` by an operator.
 */
export const DELIVERY_STATUSES = ['unhandled', 'processing', 'pending', 'dead', 'done', 'discarded'] as const;

export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** A delivery in a list. Times are in milliseconds since the epoch. */
export interface DeliverySummary {
  readonly seq: number;
  readonly id: string;
  readonly source: string;
  readonly event: string | null;
  /** The sender's own name of the event where its source renames it; null otherwise. */
  readonly senderEvent: string | null;
  readonly status: DeliveryStatus;
  readonly receivedAt: number;
  /** Sum over all its jobs. */
  readonly attempts: number;
  /** Length of the body in bytes. */
  readonly size: number;
  /** The first time that one of its jobs waits for, or waited for until now; null without any. */
  readonly plannedAt: number | null;
}

/** One job of a delivery. */
export interface JobDetail {
  readonly target: string;
  readonly status: 'pending' | 'processing' | 'done' | 'dead' | 'discarded';
  readonly attempts: number;
  readonly dueAt: number;
  /** The time that it waits for before its first attempt; null when there is none. */
  readonly plannedAt: number | null;
  readonly error: string | null;
  readonly finishedAt: number | null;
  /** See deaths.ts. */
  readonly deaths: number;
  /** The attempts that are kept, the oldest first. */
  readonly history: readonly AttemptEntry[];
}

export interface DeliveryDetail extends DeliverySummary, Omit<StoredDelivery, 'senderEvent'> {
  readonly jobs: readonly JobDetail[];
}

/** Selects deliveries; all given conditions must hold. */
export interface DeliveryFilter {
  readonly status?: DeliveryStatus;
  /** By either name, the sender's own or Portico's. */
  readonly event?: string;
  readonly source?: string;
  /** Received at or after, in milliseconds since the epoch. */
  readonly since?: number;
  /** Received before, in milliseconds since the epoch. */
  readonly until?: number;
  /** The body holds these characters, as UTF-8 and case by case. */
  readonly text?: string;
}

/** Where a page starts: `before` a `seq`, newest first, or `after` one, oldest first. */
export type DeliveryCursor = { readonly before: number } | { readonly after: number };

export interface DeliveryPage {
  readonly items: readonly DeliverySummary[];
  /**
   * The `seq` before or after which the next page starts; undefined on the last page. A short or even empty page can
   * have one, because each page scans a bounded number of deliveries.
   */
  readonly next: number | undefined;
}

/** A job to open again. */
export interface ReplayedJob extends NewJob {
  /** The target whose job it takes over; default its own. */
  readonly replaces?: string;
}

/** Lists, shows, replays and discards deliveries, for operators and tools. */
export interface DeliveryLog {
  /** How many changes may be under way at once; more may wait for a connection in vain. */
  readonly maxChanges: number;
  /** Up to `limit` deliveries; without a cursor from the newest. */
  list(filter: DeliveryFilter, limit: number, cursor?: DeliveryCursor): MaybePromise<DeliveryPage>;
  find(id: string): MaybePromise<DeliveryDetail | undefined>;
  /**
   * The ids that a name may mean: the one that it is; otherwise those that begin with it, at most `limit`, and those of
   * the deliveries whose sender calls them so.
   */
  resolve(name: string, limit: number): MaybePromise<readonly string[]>;
  /**
   * Reopens the jobs of a delivery that have a target of `jobs`, or one that a job of `jobs` replaces, each with its
   * attempts reset; an unhandled delivery gets `jobs` as new ones. Resolves to false when nothing was reopened: there is no such delivery, one of its jobs is
   * already open, or none has such a target.
   */
  replay(id: string, jobs: readonly ReplayedJob[], now: number): Promise<boolean>;
  /** Discards the open and dead jobs of a delivery; resolves to false when it has none. */
  discard(id: string, now: number): Promise<boolean>;
}
