import { describeError } from '../../core/describe-error.ts';
import type { ClaimedJob } from '../delivery.ts';
import type { Inbox, Outcome } from '../inbox.ts';
import { backoff } from './backoff.ts';
import { AttemptError, NotSentError, type Target } from './target.ts';

/** Longer error messages are cut before they are stored, in characters. */
const MAX_ERROR = 1_000;

/** Receives what happens to jobs. */
export interface WorkerEvents {
  /** An attempt ended and its outcome was recorded. */
  settled(job: ClaimedJob, outcome: Outcome['kind'], error?: unknown): void;
  /** The lease ended before the attempt did, so another process may have run the job too. */
  leaseLost(job: ClaimedJob): void;
  /** The inbox was unavailable; the dispatcher retries. */
  storeFailed(error: unknown): void;
}

export interface WorkerOptions {
  readonly inbox: Inbox;
  readonly target: Target;
  readonly owner: string;
  /** Length of a lease in milliseconds. */
  readonly lease: number;
  readonly events: WorkerEvents;
}

/**
 * Claims and runs the jobs of one target. States: idle -> claiming (on wake) -> idle. A wake that comes while the worker
 * claims, or has no free slot, takes effect afterwards. After `stop` it claims nothing.
 */
export class Worker {
  readonly #options: WorkerOptions;
  readonly #running = new Map<Promise<void>, number>();
  /** Aborts the running attempts. */
  readonly #abort = new AbortController();
  #claiming: Promise<void> | undefined;
  /** Whether there may be a job to claim. */
  #pending = false;
  #stopped = false;

  constructor(options: WorkerOptions) {
    this.#options = options;
  }

  /** The jobs that this worker is running. */
  get leased(): readonly number[] {
    return [...this.#running.values()];
  }

  /** Claims jobs as soon as there is a free slot. */
  wake(): void {
    this.#pending = true;
    if (this.#stopped || this.#claiming !== undefined || this.#freeSlots === 0) return;
    this.#claiming = this.#claim().finally(() => {
      this.#claiming = undefined;
      if (this.#pending) this.wake();
    });
  }

  /** Stops claiming and waits for running attempts; `deadline` aborts them and releases their jobs. */
  async stop(deadline: AbortSignal): Promise<void> {
    this.#stopped = true;
    const abort = () => this.#abort.abort(deadline.reason);
    if (deadline.aborted) abort();
    deadline.addEventListener('abort', abort, { once: true });
    await this.#claiming;
    await Promise.all(this.#running.keys());
    deadline.removeEventListener('abort', abort);
  }

  get #freeSlots(): number {
    return this.#options.target.concurrency - this.#running.size;
  }

  async #claim(): Promise<void> {
    const { inbox, target, owner, lease, events } = this.#options;
    while (this.#pending && this.#freeSlots > 0 && !this.#stopped) {
      const slots = this.#freeSlots;
      this.#pending = false;
      try {
        const now = Date.now();
        const jobs = await inbox.claim(target.name, slots, owner, now, now + lease);
        if (jobs.length === slots) this.#pending = true;
        for (const job of jobs) this.#start(job);
      } catch (error) {
        // The next poll retries.
        events.storeFailed(error);
      }
    }
  }

  #start(job: ClaimedJob): void {
    const running = this.#attempt(job)
      .catch((error: unknown) => this.#options.events.storeFailed(error))
      .finally(() => {
        this.#running.delete(running);
        // The next job with the same order key may be claimable now.
        if (this.#pending || this.#options.target.ordered === true) this.wake();
      });
    this.#running.set(running, job.job);
  }

  async #attempt(job: ClaimedJob): Promise<void> {
    const { inbox, owner, events } = this.#options;
    const { outcome, error } = await this.#run(job);
    const recorded = await inbox.settle(job, owner, outcome, Date.now());
    if (recorded) events.settled(job, outcome.kind, error);
    else events.leaseLost(job);
  }

  async #run(job: ClaimedJob): Promise<{ readonly outcome: Outcome; readonly error?: unknown }> {
    const { target } = this.#options;
    // A process died during the last allowed attempt.
    if (job.attempt > target.maxAttempts) {
      return { outcome: { kind: 'dead', error: 'the process exited during the last attempt' } };
    }
    const timeout = new AbortController();
    const timer = setTimeout(
      () => timeout.abort(new AttemptError(`took longer than ${target.timeout} ms`)),
      target.timeout,
    );
    const signal = AbortSignal.any([timeout.signal, this.#abort.signal]);
    try {
      signal.throwIfAborted();
      await unlessAborted(target.run(job, signal), signal);
      return { outcome: { kind: 'done' } };
    } catch (error) {
      if (this.#abort.signal.aborted || error instanceof NotSentError)
        return { outcome: { kind: 'released' } };
      return { outcome: this.#failure(job, error), error };
    } finally {
      clearTimeout(timer);
    }
  }

  #failure({ attempt }: ClaimedJob, error: unknown): Outcome {
    const { target } = this.#options;
    const message = describeError(error).slice(0, MAX_ERROR);
    const retryAfter = error instanceof AttemptError ? error.retryAfter : undefined;
    if (retryAfter === 'never' || attempt >= target.maxAttempts) return { kind: 'dead', error: message };
    const wait = Math.max(retryAfter ?? 0, backoff(attempt, target.backoff, Math.random()));
    return { kind: 'retry', dueAt: Date.now() + wait, error: message };
  }
}

/** Rejects when the signal aborts, even if the work ignores it: a handler cannot block the worker. */
async function unlessAborted(work: void | Promise<void>, signal: AbortSignal): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort);
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
