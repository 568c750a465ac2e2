import type { MaybePromise } from '../core/scheduler.ts';
import type { ClaimedJob, NewDelivery } from './delivery.ts';

/** The result of an append. `revived`: a duplicate of a dead delivery, whose jobs are retried. */
export type Appended = 'stored' | 'duplicate' | 'revived';

/** Jobs of a new delivery that `owner` starts right after the commit: they are stored as leased to it. */
export interface HandOver {
  /** The targets of these jobs. None of the jobs has an order key, a time or a priority. */
  readonly targets: readonly string[];
  readonly owner: string;
  /** Length of the lease in milliseconds. */
  readonly lease: number;
}

/** The result of an append that may have a handover. */
export interface AppendedAndClaimed {
  readonly appended: Appended;
  /** The jobs leased to the owner; the store may leave some to a later claim, and a duplicate has none. */
  readonly jobs: readonly ClaimedJob[];
}

/** How the only delivery of an `appendAll` was stored. Throws its error. */
export function appendedOnly([result]: readonly (AppendedAndClaimed | Error)[]): Appended {
  if (result === undefined || result instanceof Error) throw result;
  return result.appended;
}

/** The end of a successful attempt. */
interface Success {
  readonly job: ClaimedJob;
  readonly trace: AttemptTrace | undefined;
}

/** How an attempt ended. Without a trace, no attempt was made. */
export type Outcome = { readonly trace?: AttemptTrace } & (
  | { readonly kind: 'done' }
  /** `wait` is in milliseconds. */
  | { readonly kind: 'retry'; readonly wait: number; readonly error: string }
  | { readonly kind: 'dead'; readonly error: string }
  /** Released unfinished; the attempt does not count. */
  | { readonly kind: 'released' }
  /** Released because its process ends unexpectedly: counts as a crash instead of an attempt. */
  | { readonly kind: 'crashed' }
);

/** How many jobs to claim of a target. */
export interface TargetClaim {
  readonly target: string;
  /** Maximum number of jobs. */
  readonly limit: number;
}

/** Options of a claim. */
interface ClaimOptions {
  /** Jobs that the owner is still running; they are not claimed again even if their lease has ended. */
  readonly held?: readonly number[];
  /** Maximum total size of the bodies in bytes, except for the first job's. Default: no limit. */
  readonly maxBytes?: number;
  /** Claims only quarantined jobs (see `QUARANTINE_CRASHES`); by default they are never claimed. */
  readonly quarantined?: boolean;
  /** Overrides the store's clock. */
  readonly now?: number;
}

/** The result of `finish`. */
export interface Finished {
  /** False if the lease was lost; then nothing was recorded or claimed. */
  readonly recorded: boolean;
  /** The claimed next job with the same order key. */
  readonly next?: ClaimedJob | undefined;
}

/** The result of renewing leases. A job in neither list was locked by another statement. */
interface Renewal {
  readonly renewed: readonly number[];
  /** Jobs that another process has claimed or ended. */
  readonly lost: readonly number[];
}

/** Counts of unfinished jobs, apart from those of the endpoints of customers. */
export interface Backlog {
  /** Open jobs, including leased ones. */
  readonly open: number;
  /** Open jobs whose time has not come yet; absent if there are none. */
  readonly planned?: number;
  /**
   * When the oldest open job started to wait: when its delivery was received or its time came. Jobs whose
   * time has not come, and jobs behind them in the order of their key, are not counted. Undefined if no other
   * job is open.
   */
  readonly oldestAt: number | undefined;
  readonly dead: number;
}

/**
 * The durable inbox of webhook deliveries and their jobs. A claim is a lease: once it ends, another process
 * may claim the job, and the first owner can no longer settle it. Times are in milliseconds since the epoch,
 * leases in milliseconds. The store's clock decides which jobs are due and when a lease ends, unless `now` is
 * given. Every method fails with StoreUnavailableError while the database is unavailable.
 */
export interface Inbox {
  /** Stores a delivery and its jobs; resolves only once they are durable. */
  append(delivery: NewDelivery): Promise<Appended>;
  /**
   * Stores deliveries as `append` does, each of which succeeds or fails alone. Resolves once all have ended, to the
   * result of each or its error, such as TenantChangedError. Jobs of the handover of a delivery are stored as leased,
   * which saves a claim and a read.
   */
  appendAll(
    deliveries: readonly NewDelivery[],
    handOvers?: readonly (HandOver | undefined)[],
  ): Promise<readonly (AppendedAndClaimed | Error)[]>;
  /** The id of the delivery stored with this source and dedup key; undefined if none is known. */
  idOf(source: string, dedupKey: string): MaybePromise<string | undefined>;
  /** The targets, out of `targets`, that have a due job. */
  due(targets: readonly string[], now?: number): MaybePromise<readonly string[]>;
  /**
   * Examines the next `limit` targets with open jobs whose names begin with `prefix`, in their order after `after`, and
   * returns those with a due job, or with `quarantined` those with a due quarantined one. `last` is the last target that
   * was examined if there may be more.
   */
  waiting(
    prefix: string,
    options: {
      readonly after: string;
      readonly limit: number;
      readonly quarantined?: boolean;
      readonly now?: number;
    },
  ): MaybePromise<{ readonly due: readonly string[]; readonly last: string | undefined }>;
  /** The targets, out of `targets`, that have a due quarantined job. */
  dueQuarantined(targets: readonly string[], now?: number): MaybePromise<readonly string[]>;
  /**
   * Claims up to `limit` due jobs of a target for `lease`, oldest first. It may claim fewer, but at least
   * one, if jobs blocked by their order hide others. Claiming a job whose previous lease ran out counts as a
   * crash, and its last attempt then does not count.
   */
  claim(
    target: string,
    limit: number,
    owner: string,
    lease: number,
    options?: ClaimOptions,
  ): Promise<readonly ClaimedJob[]>;
  /**
   * Claims jobs of several targets, each as `claim` does with `maxBytes` for each target. Resolves to the jobs of each, or
   * its error. Absent if the store combines claims itself.
   */
  claimEach?(
    targets: readonly TargetClaim[],
    owner: string,
    lease: number,
    options?: Omit<ClaimOptions, 'quarantined'>,
  ): Promise<readonly (readonly ClaimedJob[] | Error)[]>;
  /** Extends the leases that `owner` holds on these jobs to `lease` from now. */
  renew(owner: string, jobs: readonly number[], lease: number, now?: number): Promise<Renewal>;
  /** Records how an attempt ended and adds it to the job's history; false, and nothing, without the lease. */
  settle(job: ClaimedJob, owner: string, outcome: Outcome, now?: number): Promise<boolean>;
  /**
   * Records several successes in one go, each as `settle` does. Resolves to whether each was
   * recorded; rejects, with nothing recorded, if one of them fails. Absent if the store batches outcomes
   * itself.
   */
  settleDone?(successes: readonly Success[], owner: string): Promise<readonly boolean[]>;
  /**
   * Records that a job is done or dead, as `settle` does, and in the same commit claims the next job with its
   * order key if that is due, has a body of at most `maxBytes` and is not quarantined.
   */
  finish(
    job: ClaimedJob,
    owner: string,
    outcome: Extract<Outcome, { readonly kind: 'done' | 'dead' }>,
    next: { readonly lease: number; readonly maxBytes: number },
    now?: number,
  ): Promise<Finished>;
  /**
   * Records that this process runs jobs of `targets`. Other targets that have open jobs but no heartbeat also
   * get one, which starts their grace period.
   */
  recordHeartbeat(targets: readonly string[], now: number): Promise<void>;
  /**
   * Marks orphaned jobs as dead: up to `limit` open jobs that were due before `before` and whose target has
   * had no heartbeat since. Resolves to the target of each job.
   */
  expireOrphans(before: number, limit: number, error: string, now: number): Promise<readonly string[]>;
  backlog(): MaybePromise<Backlog>;
  /**
   * Runs one step of a rule, which takes a few milliseconds. Each rule scans its entries in the order in
   * which they became removable and continues where the last step of any process ended, so kept entries are
   * not scanned again.
   */
  prune(rule: PruneRule): Promise<PruneStep>;
  /**
   * Runs one step of forgetting dedup keys of removed deliveries: keys received before `before`, and the
   * oldest keys as long as there are more than `max`.
   */
  forgetKeys(before: number, max: number): Promise<PruneStep>;
  /** Checkpoints of work that exactly one process may do. */
  readonly checkpoints: Checkpoints;
  readonly enqueued: EnqueuedDeliveries;
  /** The last change of a user that deliveries were made of. */
  readonly relay: RelayStore;
  /** The same for changes of relations, of which some are recorded. */
  readonly changeRelay: RelayStore;
  /**
   * Per target, the jobs that died by `until` and after the checkpoint of the target's alerts, if that
   * checkpoint is at least `interval` older than `until`. Excludes the targets of alerts themselves.
   */
  deadLetters(until: number, interval: number): MaybePromise<readonly DeadLetters[]>;
  /** The time of the store's clock, which decides which jobs are due. */
  clock(): MaybePromise<number>;
  /** The estimated size of the deliveries in bytes. */
  size(): MaybePromise<number>;
  /** Calls a listener when another process has added work; absent if only one process uses the database. */
  onWork?(listener: () => void): Disposable;
}

/** A step of a checkpoint, in milliseconds since the epoch. */
export interface CheckpointMove {
  readonly name: string;
  /** The current value; 0 before the first move. */
  readonly from: number;
  readonly to: number;
}

/**
 * Checkpoints of work that exactly one process may do, such as storing a scheduled delivery. If several
 * processes move a checkpoint from the same value, one succeeds. Fails with StoreUnavailableError.
 */
export interface Checkpoints {
  /** The values of the checkpoints with these names; a name that was never set is missing. */
  read(names: readonly string[]): MaybePromise<ReadonlyMap<string, number>>;
  /** Moves a checkpoint; resolves to false if its value is not `from`. */
  move(move: CheckpointMove): Promise<boolean>;
  /** Moves a checkpoint and stores a delivery in one commit; undefined, and nothing, if it is not `from`. */
  append(move: CheckpointMove, delivery: NewDelivery): Promise<Appended | undefined>;
  /** The wall clock for checkpoints: the database server's if there is one. It may be set back. */
  clock(): MaybePromise<number>;
}

/** A delivery that a program has enqueued in its own committed transaction. */
export interface Enqueued {
  /** Its number in the table of enqueued deliveries. */
  readonly seq: number;
  readonly id: string;
  readonly source: string;
  readonly event: string;
  readonly body: Uint8Array;
  /** Milliseconds since the epoch. */
  readonly receivedAt: number;
  readonly dedupKey: string | null;
}

/** An enqueued delivery with the jobs to store for it. */
export interface TakenDelivery {
  readonly seq: number;
  readonly delivery: NewDelivery;
}

/** Enqueued deliveries that no service has taken over yet. Fails with StoreUnavailableError. */
export interface EnqueuedDeliveries {
  /** The oldest enqueued deliveries, bounded in number and size. */
  oldest(): MaybePromise<readonly Enqueued[]>;
  /** Stores them as deliveries; undefined for each one that another process has taken. */
  take(taken: readonly TakenDelivery[]): Promise<readonly (Appended | undefined)[]>;
  /** Removes deliveries that were stored in another way. */
  remove(enqueued: readonly Pick<Enqueued, 'seq' | 'id'>[]): Promise<void>;
  /** Calls a listener when something may have been enqueued; absent if the engine cannot notify. */
  onEnqueued?(listener: () => void): Disposable;
}

/** The answer of a forward address. */
export interface Answer {
  readonly status: number;
  /** The first kilobyte of its body, as text. */
  readonly body: string;
}

/** What is recorded about an attempt besides its outcome. */
interface AttemptTrace {
  /** In milliseconds. */
  readonly duration: number;
  /** Null for a handler, and if no answer arrived. */
  readonly answer: Answer | null;
  /** Maximum number of history entries to keep for the job; the oldest are removed. */
  readonly kept: number;
}

/** One ended attempt of a job. Times are in milliseconds since the epoch. */
export interface AttemptEntry {
  /** From 1 after the job is added or replayed; an uncounted attempt has the number of the next one. */
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

/** Which deliveries a step removes, never one with an open job. Times are in ms since the epoch. */
export type PruneRule =
  /** Deliveries whose jobs all ended before `before`. */
  | { readonly kind: 'ended'; readonly before: number; readonly remember?: number | undefined }
  /** Deliveries without jobs received before `before`. */
  | { readonly kind: 'unhandled'; readonly before: number; readonly now: number }
  /** While the inbox exceeds `maxBytes`: deliveries whose jobs ended before `before`, none of them dead. */
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
 * The last event of a log that deliveries were made of, shared by all processes. Later events are kept as
 * long as a process keeps moving it. Fails with StoreUnavailableError.
 */
export interface RelayStore {
  /** The current place; sets it to `start` if there is none. */
  begin(start: RelayPlace): Promise<RelayPlace>;
  /** Moves the place and stores deliveries in one commit; false, and nothing, if it is not at `from`. */
  move(from: RelayPlace, to: RelayPlace, deliveries: readonly NewDelivery[]): Promise<boolean>;
  /** Removes the place, because no process makes deliveries of events any more. */
  end(): Promise<void>;
}

/** Jobs of a target that died since the last alert about it. */
interface DeadLetters {
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
