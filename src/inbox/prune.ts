import type { NewDelivery } from './delivery.ts';

/** The answer of a forward address. */
export interface Answer {
  readonly status: number;
  /** The first kilobyte of its body, as text. */
  readonly body: string;
}

/** What is recorded about an attempt besides its outcome. */
export interface AttemptTrace {
  /** In milliseconds. */
  readonly duration: number;
  /** Null for a handler, and if no answer arrived. */
  readonly answer: Answer | null;
  /** Maximum number of history entries to keep for the job; the oldest are removed. */
  readonly kept: number;
}

/** Default number of history entries that a job keeps. */
export const KEPT_ATTEMPTS = 20;

/** Maximum size of the kept part of an answer, in bytes. */
export const MAX_ANSWER = 1_024;

/** One ended attempt of a job. Times are in milliseconds since the epoch. */
export interface AttemptEntry {
  /**
   * Counts from 1 after the job is added or replayed. An attempt that does not count has the same number as
   * the next one.
   */
  readonly attempt: number;
  /** `crashed`: the process ended, or stalled until the lease ran out. */
  readonly outcome: 'done' | 'retry' | 'dead' | 'released' | 'crashed';
  readonly startedAt: number;
  /** In milliseconds; null for `crashed`, whose end was not recorded. */
  readonly duration: number | null;
  /** The process that made the attempt: host name, process id and a random part. */
  readonly process: string;
  readonly answer: Answer | null;
  readonly error: string | null;
}

/**
 * Selects the deliveries that a step removes; deliveries with an open job are never removed. Times are in
 * milliseconds since the epoch.
 */
export type PruneRule =
  /** Deliveries whose jobs all ended before `before`. */
  | { readonly kind: 'ended'; readonly before: number; readonly remember?: number | undefined }
  /** Deliveries without jobs received before `before`. */
  | { readonly kind: 'unhandled'; readonly before: number; readonly now: number }
  /**
   * While the inbox is larger than `maxBytes`: deliveries whose jobs all ended before `before`, none of them
   * dead.
   */
  | {
      readonly kind: 'excess';
      readonly before: number;
      readonly maxBytes: number;
      readonly remember?: number | undefined;
    };

/**
 * The `remember` of a rule, or null: the dedup keys of removed deliveries received at or after it are
 * remembered, except if one of their jobs is dead, because a repeated delivery may then still be handled.
 */
export function rememberedFrom(rule: PruneRule): number | null {
  return 'remember' in rule ? (rule.remember ?? null) : null;
}

/** The result of a step. */
export interface PruneStep {
  readonly removed: number;
  /** Entries examined, a bounded number. */
  readonly looked: number;
  /** Whether nothing is left to examine. */
  readonly isLast: boolean;
}

/** A position in a log of events: an event's number, and its time in milliseconds since the epoch. */
export interface RelayPlace {
  readonly position: number;
  readonly at: number;
}

/**
 * The last event of users that deliveries were made of, shared by all processes. Later events are kept as
 * long as a process keeps moving it. Fails with StoreUnavailableError.
 */
export interface RelayStore {
  /** The current place; sets it to `start` if there is none. */
  begin(start: RelayPlace): Promise<RelayPlace>;
  /**
   * Moves the place and stores deliveries in one commit; false, with nothing stored, if the place is not
   * `from`.
   */
  move(from: RelayPlace, to: RelayPlace, deliveries: readonly NewDelivery[]): Promise<boolean>;
  /** Removes the place, because no process makes deliveries of events any more. */
  end(): Promise<void>;
}

/**
 * The place is moved at least this often, even to itself, in milliseconds: well within the shortest
 * retention.
 */
export const RELAY_SIGN = 10 * 60_000;

/** Jobs of a target that died since the last alert about it. */
export interface DeadLetters {
  readonly target: string;
  /** Their number, at most `MAX_COUNTED`. */
  readonly count: number;
  /** The checkpoint of the target's alerts; 0 before the first one. */
  readonly since: number;
}

/** Counting the dead jobs of a target stops here. */
export const MAX_COUNTED = 100_000;

/** Prefix of the targets of alerts; these get no alerts themselves. */
export const ALERT_PREFIX = 'alert:';

/** Prefix of the checkpoint names of alerts; the target follows. */
export const ALERT_CHECKPOINT = 'alert:dead:';
