import type { NewDelivery } from './delivery.ts';

/** What the receiver of a forwarded delivery answered. */
export interface Answer {
  readonly status: number;
  /** The first kilobyte of its body, as text. */
  readonly body: string;
}

/** What an attempt leaves behind, beside its outcome. */
export interface AttemptTrace {
  /** In milliseconds. */
  readonly duration: number;
  /** Null for a handler, and where no answer came. */
  readonly answer: Answer | null;
  /** Maximum number of entries that the job keeps; the oldest go. */
  readonly kept: number;
}

/** Entries that a job keeps unless its target says otherwise. */
export const KEPT_ATTEMPTS = 20;

/** Maximum size of the kept part of an answer, in bytes. */
export const MAX_ANSWER = 1_024;

/** One attempt of a job that has ended. Times are in milliseconds since the epoch. */
export interface AttemptEntry {
  /** 1 for the first one since the job was added or replayed; what did not count has the number of its next try. */
  readonly attempt: number;
  /** `crashed`: its process ended, or stopped until its lease ran out. */
  readonly outcome: 'done' | 'retry' | 'dead' | 'released' | 'crashed';
  readonly startedAt: number;
  /** In milliseconds; null for `crashed`, whose end nobody recorded. */
  readonly duration: number | null;
  /** The process that made it: its host, its number there, and a random part. */
  readonly process: string;
  readonly answer: Answer | null;
  readonly error: string | null;
}

/** Which deliveries a step removes; never one with an open job. Times are in milliseconds since the epoch. */
export type PruneRule =
  /** Those whose jobs have all ended before `before`. */
  | { readonly kind: 'ended'; readonly before: number; readonly remember?: number | undefined }
  /** Those without jobs that were received before `before`. */
  | { readonly kind: 'unhandled'; readonly before: number; readonly now: number }
  /** While the inbox is larger than `maxBytes`: those whose jobs have all ended before `before`, none of them dead. */
  | {
      readonly kind: 'excess';
      readonly before: number;
      readonly maxBytes: number;
      readonly remember?: number | undefined;
    };

/**
 * The `remember` of a rule: of the removed deliveries that were received at or after it, the dedup keys are remembered,
 * unless one of their jobs was dead, since a repeat may still handle that one. None for a rule without it.
 */
export function rememberedFrom(rule: PruneRule): number | null {
  return 'remember' in rule ? (rule.remember ?? null) : null;
}

/** What a step did. */
export interface PruneStep {
  readonly removed: number;
  /** Entries that it looked at, a bounded number. */
  readonly looked: number;
  /** Whether there is nothing more to look at. */
  readonly isLast: boolean;
}

/** A place in a log of events: the number of one, and its moment in milliseconds since the epoch. */
export interface RelayPlace {
  readonly position: number;
  readonly at: number;
}

/**
 * Up to which event deliveries were made of the users' events, for all processes together. Events behind it are kept as
 * long as somebody moves it. Fails with StoreUnavailableError.
 */
export interface RelayStore {
  /** Where it is; it begins at `start` where it is nowhere. */
  begin(start: RelayPlace): Promise<RelayPlace>;
  /** Moves it and stores deliveries in the same commit; false where it is not at `from`: then nothing is stored. */
  move(from: RelayPlace, to: RelayPlace, deliveries: readonly NewDelivery[]): Promise<boolean>;
  /** Forgets where it is: nobody makes deliveries of events any more. */
  end(): Promise<void>;
}

/** How often it is moved at least, even to where it is already, in milliseconds: well within the shortest retention. */
export const RELAY_SIGN = 10 * 60_000;

/** The jobs of a target that have died since the last alert about it. */
export interface DeadLetters {
  readonly target: string;
  /** How many, at most `MAX_COUNTED`. */
  readonly count: number;
  /** Where the mark of its alerts is; 0 before the first one. */
  readonly since: number;
}

/** No more dead jobs of a target are counted. */
export const MAX_COUNTED = 100_000;

/** The targets of alerts begin with this; there are no alerts about them. */
export const ALERT_PREFIX = 'alert:';

/** The name of the mark of the alerts about a target begins with this. */
export const ALERT_CHECKPOINT = 'alert:dead:';
