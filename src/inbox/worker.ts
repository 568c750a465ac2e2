import { describeError } from '../core/describe-error.ts';
import { backoff } from './backoff.ts';
import type { ClaimedJob } from './delivery.ts';
import type { Inbox, Outcome } from './inbox.ts';
import { AttemptError, type Target } from './target.ts';

/** What is kept of an error's text; a stack has no place in a list. */
const MAX_ERROR = 1_000;

/** What a lane tells of: each attempt that was recorded, and what went wrong with the store. */
export interface LaneEvents {
  settled(job: ClaimedJob, outcome: Outcome['kind'], error?: unknown): void;
  /** The lease ended before the attempt did: another process may have done the job too. */
  leaseLost(job: ClaimedJob): void;
  storeFailed(error: unknown): void;
}

export interface LaneOptions {
  readonly inbox: Inbox;
  readonly target: Target;
  readonly owner: string;
  /** Length of a lease in milliseconds. */
  readonly lease: number;
  readonly events: LaneEvents;
}

/**
 * The jobs of one target. States: idle -> claiming (wake) -> idle; while it claims or has no room a wake is
 * remembered and done afterwards. After `stop` nothing is claimed any more.
 */
export class Lane {
  readonly #options: LaneOptions;
  readonly #running = new Map<Promise<void>, number>();
  readonly #cut = new AbortController();
  #claiming: Promise<void> | undefined;
  #wanted = false;
  #stopped = false;

  constructor(options: LaneOptions) {
    this.#options = options;
  }

  get target(): string {
    return this.#options.target.name;
  }

  /** The jobs of the attempts under way. */
  get inHand(): readonly number[] {
    return [...this.#running.values()];
  }

  /** Says that there may be a job to claim. */
  wake(): void {
    this.#wanted = true;
    if (this.#stopped || this.#claiming !== undefined || !this.#hasRoom()) return;
    this.#claiming = this.#claim().finally(() => {
      this.#claiming = undefined;
      if (this.#wanted) this.wake();
    });
  }

  /** Claims nothing more and waits for the attempts under way; `deadline` cuts them, and their jobs are given back. */
  async stop(deadline: AbortSignal): Promise<void> {
    this.#stopped = true;
    const cut = () => this.#cut.abort(deadline.reason);
    if (deadline.aborted) cut();
    deadline.addEventListener('abort', cut, { once: true });
    await this.#claiming;
    await Promise.all(this.#running.keys());
    deadline.removeEventListener('abort', cut);
  }

  #hasRoom(): boolean {
    return this.#running.size < this.#options.target.concurrency;
  }

  async #claim(): Promise<void> {
    const { inbox, target, owner, lease, events } = this.#options;
    while (this.#wanted && this.#hasRoom() && !this.#stopped) {
      const room = target.concurrency - this.#running.size;
      this.#wanted = false;
      try {
        const now = Date.now();
        const jobs = await inbox.claim(target.name, room, owner, now, now + lease);
        if (jobs.length === room) this.#wanted = true;
        for (const job of jobs) this.#start(job);
      } catch (error) {
        // The next look for due jobs tries again.
        events.storeFailed(error);
      }
    }
  }

  #start(job: ClaimedJob): void {
    const running = this.#attempt(job)
      .catch((error: unknown) => this.#options.events.storeFailed(error))
      .finally(() => {
        this.#running.delete(running);
        // The end of one job may be what another one of its order waited for.
        if (this.#wanted || this.#options.target.ordered === true) this.wake();
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
    // Its process died in the last attempt that was allowed.
    if (job.attempt > target.maxAttempts) {
      return { outcome: { kind: 'dead', error: 'the process ended during the last attempt' } };
    }
    const timeout = new AbortController();
    const timer = setTimeout(
      () => timeout.abort(new AttemptError(`took longer than ${target.timeout} ms`)),
      target.timeout,
    );
    const signal = AbortSignal.any([timeout.signal, this.#cut.signal]);
    try {
      signal.throwIfAborted();
      await unlessAborted(target.run(job, signal), signal);
      return { outcome: { kind: 'done' } };
    } catch (error) {
      if (this.#cut.signal.aborted) return { outcome: { kind: 'released' } };
      return { outcome: this.#failed(job, error), error };
    } finally {
      clearTimeout(timer);
    }
  }

  #failed({ attempt }: ClaimedJob, error: unknown): Outcome {
    const { target } = this.#options;
    const said = describeError(error).slice(0, MAX_ERROR);
    const after = error instanceof AttemptError ? error.retryAfter : undefined;
    if (after === 'never' || attempt >= target.maxAttempts) return { kind: 'dead', error: said };
    const wait = Math.max(after ?? 0, backoff(attempt, target.backoff, Math.random()));
    return { kind: 'retry', dueAt: Date.now() + wait, error: said };
  }
}

/** Waits for work, but no longer than the signal: a handler that does not listen to it must not hold up the rest. */
async function unlessAborted<T>(work: T | Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort);
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
