import type { ClaimedJob } from '../delivery.ts';
import type { Answer } from '../prune.ts';
import type { ClaimRateLimit } from './claim-rate.ts';

/** Thrown by a target that knows better than the backoff when, or whether, to retry. */
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

/** Thrown by a target that could not do its work through no fault of the delivery: the attempt does not count. */
export class UncountedError extends AttemptError {}

/** Thrown by a target that has sent nothing, because the process stops. */
export class NotSentError extends UncountedError {
  constructor(host: string) {
    super(`nothing was sent to ${host}, because the process stops`);
  }
}

/** Runs the jobs of one name: a handler or a forward address. Times are in milliseconds. */
export interface Target {
  readonly name: string;
  /**
   * Runs one attempt; it failed when this throws or rejects. `answered` is told of an answer that came from elsewhere, and
   * again once more of it is there; from the first call on the timeout no longer applies.
   */
  run(job: ClaimedJob, signal: AbortSignal, answered: (answer: Answer) => void): void | Promise<void>;
  /** Maximum number of concurrent attempts in this process. */
  readonly concurrency: number;
  /** Timeout of an attempt. */
  readonly timeout: number;
  /** A job is dead after this many failed attempts. */
  readonly maxAttempts: number;
  /** Maximum number of entries in the history of a job; default 20. */
  readonly keptAttempts?: number;
  readonly backoff: BackoffOptions;
  /** What targets share goes to those with a higher one first; default 0. */
  readonly priority?: number;
  /** Says how many attempts may begin; default as many as there are slots. What has one is not claimed ahead. */
  readonly rateLimit?: ClaimRateLimit;
}

interface BackoffOptions {
  /** Maximum wait before the second attempt, in milliseconds; it doubles with each attempt. */
  readonly base: number;
  /** Upper bound of every wait, in milliseconds. */
  readonly cap: number;
}

/**
 * The wait after a failed attempt, in milliseconds: exponential with full jitter, so that deliveries that failed
 * together do not retry together. `random` is from 0 to below 1.
 */
export function backoff(attempt: number, { base, cap }: BackoffOptions, random: number): number {
  // The exponent is bounded: 2 ** 1024 would be Infinity.
  const limit = Math.min(cap, base * 2 ** Math.min(attempt - 1, 50));
  return Math.floor(random * limit);
}
