import type { ClaimedJob } from '../delivery.ts';
import type { Answer, Outcome, TargetClaim } from '../inbox.ts';
import type { ClaimRateLimit } from './claim-rate.ts';

/** Thrown by a target to override when, or whether, the job is retried. */
export class AttemptError extends Error {
  override readonly name = 'AttemptError';
  readonly code = 'ATTEMPT';
  /** Minimum wait in milliseconds; undefined: the backoff decides; never: no retry. */
  readonly retryAfter: number | 'never' | undefined;

  constructor(message: string, retryAfter?: number | 'never') {
    super(message);
    this.retryAfter = retryAfter;
  }
}

/** Thrown by a target that failed for reasons unrelated to the delivery: the attempt does not count. */
export class UncountedError extends AttemptError {}

/** A handler or forward address that runs the jobs of its name. Times are in milliseconds. */
export interface Target {
  readonly name: string;
  /**
   * Runs one attempt, which fails if this throws or rejects. `answered` is called with the answer of a
   * receiver, and again when more of it has arrived; after the first call the timeout no longer applies.
   */
  run(job: ClaimedJob, signal: AbortSignal, answered: (answer: Answer) => void): void | Promise<void>;
  /** Maximum number of concurrent attempts in this process. */
  readonly concurrency: number;
  /** Timeout of an attempt. */
  readonly timeout: number;
  /** A job is dead after this many failed attempts. */
  readonly maxAttempts: number;
  /** Maximum number of entries in the history of a job. Default: 20. */
  readonly keptAttempts?: number;
  readonly backoff: BackoffOptions;
  /** Resources shared by targets go to higher priorities first. Default: 0. */
  readonly priority?: number;
  /** Limits how many attempts may start, without prefetching. Default: as many as there are slots. */
  readonly rateLimit?: ClaimRateLimit;
  /** The targets whose jobs it runs. Default: only its own, those of its name. */
  readonly group?: TargetGroup;
}

/**
 * Chooses among many targets that share one worker, whose `Target` has their limits and runs the jobs of all of them.
 * It holds no jobs: it knows which targets may have due ones, and how many of each run in this process.
 */
export interface TargetGroup {
  /** The targets of the group are those whose names begin with this. */
  readonly prefix: string;
  /** Calls `wake` when a target may be claimed from although no job was noted and none has ended. */
  onReady(wake: () => void): void;
  /** Notes that a target may have a job that is due. */
  note(target: string): void;
  /** Whether a target that was noted may be claimed from now. */
  readonly isReady: boolean;
  /** The targets to claim from next, with at most `limit` jobs together. */
  next(limit: number): readonly TargetClaim[];
  /** Tells how a claim of `next` ended; `mayHaveMore` if there may be further due jobs of the target. */
  claimed(target: string, jobs: number, mayHaveMore: boolean): void;
  /** Whether a job of the target that is about to be stored may start at once; it then counts as running. */
  reserve(target: string): boolean;
  /** Whether a job with an order key may start as soon as the one before it of the target has ended. */
  mayFollow(target: string): boolean;
  /** Counts a job of the target that starts although `next` did not name it. */
  took(target: string): void;
  /** Tells that a job of the target no longer runs; without an outcome it was not stored or not recorded. */
  ended(target: string, outcome?: Outcome['kind']): void;
}

interface BackoffOptions {
  /** Maximum wait before the second attempt, in milliseconds; it doubles with each attempt. */
  readonly base: number;
  /** Upper bound of every wait, in milliseconds. */
  readonly cap: number;
}

/**
 * The wait after a failed attempt in milliseconds: exponential with full jitter, so that deliveries that
 * failed together do not retry together. `random` is at least 0 and below 1.
 */
export function backoff(attempt: number, { base, cap }: BackoffOptions, random: number): number {
  // The exponent is bounded: 2 ** 1024 would be Infinity.
  const limit = Math.min(cap, base * 2 ** Math.min(attempt - 1, 50));
  return Math.floor(random * limit);
}
