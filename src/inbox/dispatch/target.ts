import type { ClaimedJob } from '../delivery.ts';
import type { BackoffOptions } from './backoff.ts';

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

/** Thrown by a target that has sent nothing, because the process stops: the attempt does not count. */
export class NotSentError extends AttemptError {
  constructor(host: string) {
    super(`nothing was sent to ${host}, because the process stops`);
  }
}

/** Runs the jobs of one name: a handler or a forward address. Times are in milliseconds. */
export interface Target {
  readonly name: string;
  /** Runs one attempt; it failed when this throws or rejects. */
  run(job: ClaimedJob, signal: AbortSignal): void | Promise<void>;
  /** Maximum number of concurrent attempts in this process. */
  readonly concurrency: number;
  /** Timeout of an attempt. */
  readonly timeout: number;
  /** A job is dead after this many failed attempts. */
  readonly maxAttempts: number;
  readonly backoff: BackoffOptions;
  /** Whether jobs have order keys, so that the end of one makes another one claimable; default false. */
  readonly ordered?: boolean;
}
