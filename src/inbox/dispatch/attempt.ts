import { AsyncLocalStorage } from 'node:async_hooks';
import { describeError } from '../../core/describe-error.ts';
import { type Answer, KEPT_ATTEMPTS } from '../attempts.ts';
import type { ClaimedJob } from '../delivery.ts';
import type { Outcome } from '../inbox.ts';
import { backoff } from './backoff.ts';
import { LeaseLostError } from './lease-lost-error.ts';
import { AttemptError, type Target, UncountedError } from './target.ts';

/** Longer error messages are cut before they are stored, in characters. */
const MAX_ERROR = 1_000;

/** How an attempt ended, and the error that it ended with. */
export interface Ended {
  readonly outcome: Outcome;
  readonly error?: unknown;
}

/** The end of an attempt that does not count. */
export const RELEASED: Ended = { outcome: { kind: 'released' } };

/** The attempt that the running code belongs to. */
const current = new AsyncLocalStorage<Attempt>();

/** The attempt whose target has caused what runs now, as an event of the process; undefined when none is known to. */
export function currentAttempt(): Attempt | undefined {
  return current.getStore();
}

/** One attempt at a job. */
export class Attempt {
  readonly job: ClaimedJob;
  /** Which one it is of the jobs with its order key that run one after the other. */
  readonly nth: number;
  /** Until when nobody else can have claimed the job, by `performance.now()`. */
  leaseUntil: number;
  /** Whether its end is being recorded. */
  settling = false;
  readonly #target: Target;
  readonly #abort = new AbortController();
  readonly #end = Promise.withResolvers<Ended>();
  readonly #onOverdue: () => void;
  #begun = false;
  #leaseLost = false;
  /** How the attempt ends once it has timed out. */
  #timedOut: Ended | undefined;
  #timer: NodeJS.Timeout | undefined;
  #answer: Answer | null = null;

  /** Calls `onOverdue` when the target ignores for too long that it was told to end. */
  constructor(job: ClaimedJob, target: Target, leaseUntil: number, onOverdue: () => void, nth = 1) {
    this.job = job;
    this.nth = nth;
    this.leaseUntil = leaseUntil;
    this.#target = target;
    this.#onOverdue = onOverdue;
  }

  get leaseLost(): boolean {
    return this.#leaseLost;
  }

  /** Runs the target; never rejects. */
  run(): Promise<Ended> {
    this.#begun = true;
    const { timeout, keptAttempts: kept = KEPT_ATTEMPTS } = this.#target;
    const began = performance.now();
    const error = new AttemptError(`took longer than ${timeout} ms`);
    this.#timer = setTimeout(() => {
      this.#timedOut = this.#failure(error);
      this.#awaitEnd(this.#timedOut);
      this.#abort.abort(error);
    }, timeout);
    void this.#work().then((ended) => this.#end.resolve(this.#timedOut ?? ended));
    return this.#end.promise.then(({ outcome, error }) => {
      clearTimeout(this.#timer);
      const trace = { duration: Math.round(performance.now() - began), answer: this.#answer, kept };
      return { outcome: { ...outcome, trace }, error };
    });
  }

  /**
   * Aborts the attempt, because somebody else may have its job; false if it was told before.
   */
  loseLease(): boolean {
    if (this.#leaseLost) return false;
    this.#leaseLost = true;
    if (this.#begun && this.#timedOut === undefined) this.#awaitEnd(RELEASED);
    this.#abort.abort(new LeaseLostError());
    return true;
  }

  /** Ends the attempt without waiting for its target. */
  release(reason: unknown): void {
    this.#abortWith(RELEASED, reason);
  }

  /** Ends the attempt because its process ends; without an error it is one of those that may have caused that. */
  crash(error?: unknown): void {
    if (error === undefined) this.#abortWith({ outcome: { kind: 'died' } }, new Error('the process ends'));
    else this.#abortWith(this.#failure(error), error);
  }

  async #work(): Promise<Ended> {
    try {
      await current.run(this, () => this.#target.run(this.job, this.#abort.signal, this.#answered));
      return { outcome: { kind: 'done' } };
    } catch (error) {
      // It is not to blame for the end of its lease, nor for what others did.
      return this.#leaseLost || error instanceof UncountedError ? RELEASED : this.#failure(error);
    }
  }

  readonly #answered = (answer: Answer): void => {
    // What decides has come in time; its body may take a moment longer.
    clearTimeout(this.#timer);
    this.#answer = answer;
  };

  /**
   * An attempt that is told to end keeps its slot, its job and its order key until its target has ended: another attempt
   * would run beside it. Waits for that at most as long as an attempt may take; then it ends as `ended`.
   */
  #awaitEnd(ended: Ended): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#onOverdue();
      this.#end.resolve(ended);
    }, this.#target.timeout);
  }

  #abortWith(ended: Ended, reason: unknown): void {
    // First, because the target may end as soon as it is told.
    this.#end.resolve(ended);
    this.#abort.abort(reason);
  }

  #failure(error: unknown): Ended {
    const { maxAttempts, backoff: options } = this.#target;
    const { attempt } = this.job;
    const message = describeError(error).slice(0, MAX_ERROR);
    const retryAfter = error instanceof AttemptError ? error.retryAfter : undefined;
    if (retryAfter === 'never' || attempt >= maxAttempts) {
      return { outcome: { kind: 'dead', error: message }, error };
    }
    const wait = Math.max(retryAfter ?? 0, backoff(attempt, options, Math.random()));
    return { outcome: { kind: 'retry', wait, error: message }, error };
  }
}
