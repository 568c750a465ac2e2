import type { Answer } from '../attempts.ts';
import type { ClaimedJob } from '../delivery.ts';
import type { BackoffOptions } from './backoff.ts';
import type { ClaimGate } from './claim-gate.ts';

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
  readonly gate?: ClaimGate;
}
