import { AsyncLocalStorage } from 'node:async_hooks';
import { describeError } from '../../core/errors.ts';
import { isThenable, type MaybePromise } from '../../core/scheduler.ts';
import { nextSpan, readStoredTrace, storedTrace } from '../../core/trace.ts';
import { endWithError, type Registered, spanStarter, traceContextOf } from '../../telemetry/opentelemetry.ts';
import type { ClaimedJob } from '../delivery.ts';
import type { Answer, Outcome } from '../inbox.ts';
import { AttemptError, backoff, type Target, UncountedError } from './target.ts';

/** Longer error messages are cut before they are stored, in characters. */
const MAX_ERROR = 1_000;

/** The outcome of an attempt, with its error if it failed. */
interface Ended {
  readonly outcome: Outcome;
  readonly error?: unknown;
}

/** Default number of history entries that a job keeps. */
const KEPT_ATTEMPTS = 20;

/** The attempt that the running code belongs to. */
const current = new AsyncLocalStorage<Attempt>();

const DONE: Outcome = { kind: 'done' };

/** One attempt at a job. Timer and promise exist only for asynchronous targets: most are synchronous. */
export class Attempt {
  readonly job: ClaimedJob;
  /** The position of the job in a run of jobs with the same order key. */
  readonly nth: number;
  /** Until then no other process can have claimed the job, by `performance.now()`. */
  leaseUntil: number;
  /** Whether the outcome is being recorded. */
  settling = false;
  /** Its index in `HeldAttempts`. */
  place = -1;
  /** When it started to wait for a slot, by `performance.now()`; undefined once it runs. */
  waitsSince: number | undefined;
  readonly #target: Target;
  readonly #abort = new AbortController();
  readonly #onOverdue: () => void;
  /** When it started, by `performance.now()`; undefined before. */
  #begunAt: number | undefined;
  /** Its result; the first one set counts. */
  #ended: Ended | undefined;
  /** Resolves the result of an asynchronous target. */
  #resolve: ((ended: Ended) => void) | undefined;
  #leaseLost = false;
  /** The result to use because the attempt timed out. */
  #timedOut: Ended | undefined;
  #timer: NodeJS.Timeout | undefined;
  #answer: Answer | null = null;

  /** Calls `onOverdue` if the target keeps running too long after its signal was aborted. */
  constructor(job: ClaimedJob, target: Target, leaseUntil: number, onOverdue: () => void, nth = 1) {
    this.job = job;
    this.nth = nth;
    this.leaseUntil = leaseUntil;
    this.#target = target;
    this.#onOverdue = onOverdue;
  }

  /** The end of an attempt that does not count. */
  static readonly RELEASED: Ended = { outcome: { kind: 'released' } };

  /** The attempt whose target caused the running code, such as a process event; undefined if unknown. */
  static get current(): Attempt | undefined {
    return current.getStore();
  }

  get leaseLost(): boolean {
    return this.#leaseLost;
  }

  /** Runs the target; never throws or rejects. The result is synchronous if the target returns no promise. */
  run(): MaybePromise<Ended> {
    this.#begunAt = performance.now();
    try {
      const working = current.run(this, this.#call);
      if (isThenable(working)) return this.#goOn(working, this.#begunAt);
    } catch (error) {
      this.#endAs(this.#thrown(error));
    }
    return this.#traced(this.#ended ?? { outcome: DONE });
  }

  /** Waits for an asynchronous target. */
  async #goOn(working: PromiseLike<unknown>, begunAt: number): Promise<Ended> {
    const { promise, resolve } = Promise.withResolvers<Ended>();
    this.#resolve = resolve;
    if (this.#ended !== undefined) resolve(this.#ended);
    // The answer, which ends the timeout, may have arrived already.
    else if (this.#answer === null) {
      const used = Math.floor(performance.now() - begunAt);
      this.#timer = setTimeout(this.#timeOut, Math.max(1, this.#target.timeout - used));
    }
    Promise.resolve(working).then(
      () => this.#endAs(this.#timedOut ?? { outcome: DONE }),
      (error: unknown) => this.#endAs(this.#timedOut ?? this.#thrown(error)),
    );
    const ended = await promise;
    clearTimeout(this.#timer);
    return this.#traced(ended);
  }

  /** Aborts the attempt because another process may have its job; false if that has happened already. */
  loseLease(): boolean {
    if (this.#leaseLost) return false;
    this.#leaseLost = true;
    if (this.#begunAt !== undefined && this.#timedOut === undefined) this.#awaitEnd(Attempt.RELEASED);
    this.#abort.abort(new LeaseLostError());
    return true;
  }

  /** Ends the attempt without waiting for its target. */
  release(reason: unknown): void {
    this.#abortWith(Attempt.RELEASED, reason);
  }

  /** Ends the attempt because the process ends. Without an error, the attempt may have caused the crash. */
  crash(error?: unknown): void {
    if (error === undefined) this.#abortWith({ outcome: { kind: 'crashed' } }, new Error('the process ends'));
    else this.#abortWith(this.#failure(error), error);
  }

  readonly #call = (): unknown => this.#target.run(this.job, this.#abort.signal, this.#answered);

  readonly #timeOut = (): void => {
    const error = new AttemptError(`took longer than ${this.#target.timeout} ms`);
    this.#timedOut = this.#failure(error);
    this.#awaitEnd(this.#timedOut);
    this.#abort.abort(error);
  };

  /** The result for an error of the target. A lost lease and other processes' faults do not count. */
  #thrown(error: unknown): Ended {
    return this.#leaseLost || error instanceof UncountedError ? Attempt.RELEASED : this.#failure(error);
  }

  /** Adds what is recorded about the attempt to a result. */
  #traced({ outcome, error }: Ended): Ended {
    // Rounded up: an attempt that was made took time.
    const duration = Math.max(1, Math.ceil(performance.now() - (this.#begunAt ?? 0)));
    const { keptAttempts: kept = KEPT_ATTEMPTS } = this.#target;
    return { outcome: { ...outcome, trace: { duration, answer: this.#answer, kept } }, error };
  }

  readonly #answered = (answer: Answer): void => {
    // The answer arrived in time; reading its body may take longer.
    clearTimeout(this.#timer);
    this.#answer = answer;
  };

  /**
   * An aborted attempt keeps its slot, its job and its order key until its target has ended, because another
   * attempt would run beside it. Waits at most the target's timeout; then the attempt ends as `ended`.
   */
  #awaitEnd(ended: Ended): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#onOverdue();
      this.#endAs(ended);
    }, this.#target.timeout);
  }

  #abortWith(ended: Ended, reason: unknown): void {
    // Set first, because the target may end as soon as the signal aborts.
    this.#endAs(ended);
    this.#abort.abort(reason);
  }

  #endAs(ended: Ended): void {
    this.#ended ??= ended;
    this.#resolve?.(this.#ended);
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

/** Attempts at older deliveries, in milliseconds, start a new linked trace: backends closed the first. */
const MAX_AGE = 3_600_000;

/**
 * Records a span for each attempt whose delivery came with a trace, and for a sample of the others. The span
 * belongs to the delivery's trace; for an old delivery (a replay or late retry) it starts a new trace linked
 * to that. The target runs in the context of the span.
 */
export function attemptSpans(api: Registered['api'], isChosen: () => boolean): TraceTarget {
  const startSpan = spanStarter(api);

  function begin(job: ClaimedJob, { url }: TargetAbout) {
    const origin = readStoredTrace(job.delivery.trace);
    const isOld = Date.now() - job.delivery.receivedAt > MAX_AGE;
    const kind = url === undefined ? api.SpanKind.CONSUMER : api.SpanKind.CLIENT;
    const attributes = { ...messageAttributes(job), ...(url && clientAttributes(url)) };
    const name = url === undefined ? `process ${job.delivery.event ?? ''}`.trimEnd() : 'POST';
    return startSpan(name, { kind, attributes }, origin, isOld);
  }

  return (target, about) => ({
    ...target,
    async run(job, signal, answered) {
      if (job.delivery.trace == null && !isChosen()) return target.run(job, signal, answered);
      const { span, active } = begin(job, about);
      let status = 0;
      const own = withTrace(job, storedTrace(traceContextOf(span.spanContext())));
      try {
        await api.context.with(active, () =>
          target.run(own, signal, (answer) => {
            ({ status } = answer);
            if (status > 0) span.setAttribute('http.response.status_code', status);
            answered(answer);
          }),
        );
        span.end();
      } catch (error) {
        endWithError(api, span, status >= 300 ? { code: status } : error);
        throw error;
      }
    },
  });
}

function messageAttributes({ delivery, attempt, target }: ClaimedJob) {
  return {
    'messaging.system': 'portico',
    'messaging.operation.type': 'process',
    'messaging.destination.name': target,
    'messaging.message.id': delivery.id,
    'messaging.message.body.size': delivery.body.byteLength,
    'portico.attempt': attempt,
    ...(delivery.source !== '' && { 'portico.source': delivery.source }),
  };
}

/** Omits user, query and fragment, which may contain secrets. */
function clientAttributes({ origin, pathname, hostname, port, protocol }: URL) {
  return {
    'http.request.method': 'POST',
    'url.full': origin + pathname,
    'server.address': hostname,
    'server.port': Number(port || (protocol === 'https:' ? 443 : 80)),
  };
}

/** Wraps a target so that it continues each delivery's trace; `run` gets the context of its own span. */
export type TraceTarget = (target: Target, about: TargetAbout) => Target;

/** What spans record about a target. */
interface TargetAbout {
  /** The address that it sends to; undefined for a handler. */
  readonly url?: URL | undefined;
}

/** Continues traces without recording spans: each attempt gets a new span id in the trace of its delivery. */
export const continueTrace: TraceTarget = (target) => ({
  ...target,
  run: (job, signal, answered) => target.run(withNextSpan(job), signal, answered),
});

function withNextSpan(job: ClaimedJob): ClaimedJob {
  const context = readStoredTrace(job.delivery.trace);
  return context === undefined ? job : withTrace(job, storedTrace(nextSpan(context)));
}

/** Copies a job with another trace of its delivery. */
function withTrace(job: ClaimedJob, trace: string | null): ClaimedJob {
  return { ...job, delivery: { ...job.delivery, trace } };
}

/** The abort reason of an attempt whose job another process may have claimed. */
export class LeaseLostError extends Error {
  override readonly name = 'LeaseLostError';
  readonly code = 'LEASE_LOST';

  constructor() {
    super('the lease of the delivery is lost or may have ended; another process may handle the delivery');
  }
}
