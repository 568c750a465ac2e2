import type { MaybePromise } from '../core/maybe-promise.ts';
import type { ClaimedJob, NewDelivery } from './delivery.ts';
import type { AttemptTrace, DeadLetters, PruneRule, PruneStep, RelayStore } from './prune.ts';

/** The result of an append. `revived`: a duplicate of a dead delivery, whose jobs are retried. */
export type Appended = 'stored' | 'duplicate' | 'revived';

/** The jobs of a new delivery that `owner` begins itself as soon as they are stored, under a lease. */
export interface HandOver {
  /** The targets of the jobs, none of which has an order, a time or a priority. */
  readonly targets: readonly string[];
  readonly owner: string;
  /** In milliseconds. */
  readonly lease: number;
}

/** The result of an append with a handover. */
export interface AppendedAndClaimed {
  readonly appended: Appended;
  /** The jobs that were handed over. The store may leave some to a claim, and those of a duplicate are none. */
  readonly jobs: readonly ClaimedJob[];
}

/** The end of an attempt that has succeeded. */
interface Success {
  readonly job: ClaimedJob;
  /** In milliseconds. */
  readonly duration: number;
}

/** How an attempt ended; without a trace nothing was tried. */
export type Outcome = { readonly trace?: AttemptTrace } & (
  | { readonly kind: 'done' }
  /** `wait` is in milliseconds. */
  | { readonly kind: 'retry'; readonly wait: number; readonly error: string }
  | { readonly kind: 'dead'; readonly error: string }
  /** Released unfinished; the attempt does not count. */
  | { readonly kind: 'released' }
  /** Released because its process ends unexpectedly: counts as a crash, not as an attempt. */
  | { readonly kind: 'crashed' }
);

/** Options of a claim. */
interface ClaimOptions {
  /** Jobs that the owner is still running: they are not claimed again, even if their lease has ended. */
  readonly held?: readonly number[];
  /** Maximum size of the bodies together, in bytes; the first job is claimed whatever its size. Default: no limit. */
  readonly maxBytes?: number;
  /** Claims quarantined jobs (see `QUARANTINE_CRASHES`), and nothing else; otherwise none is claimed. */
  readonly quarantined?: boolean;
  /** Replaces the clock of the store. */
  readonly now?: number;
}

/** The end of a job that was handled in order. */
export interface Finished {
  /** False when the lease was lost; then nothing was recorded and nothing claimed. */
  readonly recorded: boolean;
  /** The next job with the same order key. */
  readonly next?: ClaimedJob | undefined;
}

/** What became of leases that were to be renewed. A job that is in neither list was locked by another statement. */
interface Renewal {
  readonly renewed: readonly number[];
  /** Somebody else has claimed or ended these jobs. */
  readonly lost: readonly number[];
}

/** Jobs that are not done. */
export interface Backlog {
  /** Open jobs, including leased ones. */
  readonly open: number;
  /** Those of them that wait for their time; absent where none does. */
  readonly planned?: number;
  /**
   * Since when the oldest open job waits: since its delivery was received, or its time came. What waits for its time does
   * not count, nor what is behind that in the order of its key. Undefined when there is none.
   */
  readonly oldestAt: number | undefined;
  readonly dead: number;
}

/**
 * The durable inbox of webhook deliveries and their jobs. A claim is a lease: once it ends another process may claim
 * the job, and the first owner can no longer settle it. Times are in milliseconds since the epoch, leases in
 * milliseconds. The clock of the store decides what is due and when a lease ends, unless `now` is given.
 * Every method fails with StoreUnavailableError while the database is unavailable.
 */
export interface Inbox {
  /** Stores a delivery and its jobs; resolves only once they are durable. */
  append(delivery: NewDelivery): Promise<Appended>;
  /** Stores a delivery as `append` does, and jobs of it as claimed: nobody has to claim and read what was just stored. */
  appendAndClaim(delivery: NewDelivery, handOver: HandOver): Promise<AppendedAndClaimed>;
  /** The id of the delivery that a source has stored with a dedup key; undefined when that is forgotten. */
  idOf(source: string, dedupKey: string): MaybePromise<string | undefined>;
  /** Those of `targets` that have a due job. */
  due(targets: readonly string[], now?: number): MaybePromise<readonly string[]>;
  /** Those of `targets` that have a due quarantined job. */
  dueQuarantined(targets: readonly string[], now?: number): MaybePromise<readonly string[]>;
  /**
   * Claims up to `limit` due jobs of a target, oldest first, for `lease`: fewer, but one at least, where jobs that wait for
   * their order hide others. That a job has an owner whose lease has ended counts as a crash; its last attempt does not
   * count then.
   */
  claim(
    target: string,
    limit: number,
    owner: string,
    lease: number,
    options?: ClaimOptions,
  ): Promise<readonly ClaimedJob[]>;
  /** Has the leases that `owner` holds on these jobs end `lease` from now. */
  renew(owner: string, jobs: readonly number[], lease: number, now?: number): Promise<Renewal>;
  /**
   * Records how an attempt ended, with its entry in the history of the job; resolves to false when the lease was lost and
   * nothing was recorded.
   */
  settle(job: ClaimedJob, owner: string, outcome: Outcome, now?: number): Promise<boolean>;
  /**
   * Records successes without answers together, as `settle` does one; resolves to whether each was recorded. When one of
   * them cannot be recorded it rejects and has recorded none. Absent where the store gathers outcomes by itself.
   */
  settleDone?(successes: readonly Success[], owner: string): Promise<readonly boolean[]>;
  /**
   * Records as `settle` does that a job is done or dead, and claims the next one with its order key in the same commit, if
   * there is one that is due, has a body of at most `maxBytes`, and is no quarantined job.
   */
  finish(
    job: ClaimedJob,
    owner: string,
    outcome: Extract<Outcome, { readonly kind: 'done' | 'dead' }>,
    next: { readonly lease: number; readonly maxBytes: number },
    now?: number,
  ): Promise<Finished>;
  /**
   * Records that this process runs the jobs of `targets`. Targets of open jobs that have no heartbeat yet get one too,
   * so that their grace period starts now.
   */
  recordHeartbeat(targets: readonly string[], now: number): Promise<void>;
  /**
   * Marks orphaned jobs as dead: up to `limit` open jobs, due since `before`, of targets without a heartbeat since
   * `before`. Resolves to the target of each.
   */
  expireOrphans(before: number, limit: number, error: string, now: number): Promise<readonly string[]>;
  backlog(): MaybePromise<Backlog>;
  /**
   * Takes one step of a rule, of a few milliseconds. Each rule goes through its entries in the order in which they became
   * removable, from where the last step of any process ended, so that no step looks again at what stays.
   */
  prune(rule: PruneRule): Promise<PruneStep>;
  /**
   * Takes one step of forgetting dedup keys of removed deliveries: those received before `before`, and the first ones
   * while there are more than `max`.
   */
  forgetKeys(before: number, max: number): Promise<PruneStep>;
  /** What happens once for all processes. */
  readonly checkpoints: Checkpoints;
  readonly enqueued: EnqueuedDeliveries;
  /** Up to which change of users there are deliveries. */
  readonly relay: RelayStore;
  /**
   * By target, the jobs that have died up to `until` and after the mark of its alerts, where that is at least `interval`
   * older; none of the targets of alerts.
   */
  deadLetters(until: number, interval: number): MaybePromise<readonly DeadLetters[]>;
  /** The time by the clock of the store, which decides what is due. */
  clock(): MaybePromise<number>;
  /** The estimated size of the deliveries in bytes. */
  size(): MaybePromise<number>;
  /** Calls a listener when another process has added work; absent where only one process uses the database. */
  onWork?(listener: () => void): Disposable;
}

/** A step of a checkpoint, in milliseconds since the epoch. */
export interface CheckpointMove {
  readonly name: string;
  /** Its present value; 0 before its first move. */
  readonly from: number;
  readonly to: number;
}

/**
 * Checkpoints of work that exactly one process may do, such as storing a scheduled delivery. If several processes move a
 * checkpoint from the same value, one succeeds. Fails with StoreUnavailableError.
 */
export interface Checkpoints {
  /** The values of the checkpoints with these names; a name that was never set is missing. */
  read(names: readonly string[]): MaybePromise<ReadonlyMap<string, number>>;
  /** Moves a checkpoint; resolves to false if its value is not `from`. */
  move(move: CheckpointMove): Promise<boolean>;
  /** Moves a checkpoint and stores a delivery in one commit; undefined, and nothing stored, if its value is not `from`. */
  append(move: CheckpointMove, delivery: NewDelivery): Promise<Appended | undefined>;
  /** The wall clock that checkpoints follow: the server's if there is one. It may be set back. */
  clock(): MaybePromise<number>;
}

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
