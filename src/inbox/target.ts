import type { BackoffOptions } from './backoff.ts';
import type { ClaimedJob } from './delivery.ts';

/** Thrown by a target that knows better than the backoff when, or whether, to try again. */
export class AttemptError extends Error {
  override readonly name = 'AttemptError';
  readonly code = 'ATTEMPT';
  /** Milliseconds to wait at the least; undefined: as the backoff says; never: no further attempt helps. */
  readonly retryAfter: number | 'never' | undefined;

  constructor(message: string, retryAfter?: number | 'never', options?: ErrorOptions) {
    super(message, options);
    this.retryAfter = retryAfter;
  }
}

/** Where jobs of one name go, and how. Times are in milliseconds. */
export interface Target {
  readonly name: string;
  /** Does the job; it failed when this throws or rejects. */
  run(job: ClaimedJob, signal: AbortSignal): void | Promise<void>;
  /** Jobs at the same time. */
  readonly concurrency: number;
  /** An attempt may take this long. */
  readonly timeout: number;
  /** After so many a job is dead. */
  readonly maxAttempts: number;
  readonly backoff: BackoffOptions;
  /** Whether some of its jobs wait for others to end; default false. */
  readonly ordered?: boolean;
}
