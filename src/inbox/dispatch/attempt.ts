import { AsyncLocalStorage } from 'node:async_hooks';
import type { Link, Span } from '@opentelemetry/api';
import { describeError } from '../../core/errors.ts';
import { isThenable, type MaybePromise } from '../../core/maybe-promise.ts';
import { nextSpan, readStoredTrace, storedTrace } from '../../core/trace.ts';
import {
  endWithError,
  type OpenTelemetryApi,
  parentContext,
  SCOPE,
  spanContextOf,
  traceContextOf,
} from '../../telemetry/opentelemetry.ts';
import type { ClaimedJob } from '../delivery.ts';
import type { Outcome } from '../inbox.ts';
import { type Answer, KEPT_ATTEMPTS } from '../prune.ts';
import { AttemptError, backoff, type Target, UncountedError } from './target.ts';

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

const DONE: Outcome = { kind: 'done' };

/**
 * One attempt at a job. Most targets return at once, so what only those need that go on (a timer, a promise of the end) is
 * made when one does.
 */
export class Attempt {
  readonly job: ClaimedJob;
  /** Which one it is of the jobs with its order key that run one after the other. */
  readonly nth: number;
  /** Until when nobody else can have claimed the job, by `performance.now()`. */
  leaseUntil: number;
  /** Whether its end is being recorded. */
  settling = false;
  /** Its place in `HeldAttempts`. */
  place = -1;
  /** Since when it waits for a slot, by `performance.now()`; undefined once it has begun. */
  waitsSince: number | undefined;
  readonly #target: Target;
  readonly #abort = new AbortController();
  readonly #onOverdue: () => void;
  /** When it began, by `performance.now()`; undefined before. */
  #begunAt: number | undefined;
  /** How it has ended; the first end counts. */
  #ended: Ended | undefined;
  /** Tells the end of an attempt whose target works on. */
  #resolve: ((ended: Ended) => void) | undefined;
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

  /** Runs the target; never throws or rejects. The end comes at once where the target returns no promise. */
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

  /** The end of an attempt whose target works on. */
  async #goOn(working: PromiseLike<unknown>, begunAt: number): Promise<Ended> {
    const { promise, resolve } = Promise.withResolvers<Ended>();
    this.#resolve = resolve;
    if (this.#ended !== undefined) resolve(this.#ended);
    // What decides may have come already.
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

  /**
   * Aborts the attempt, because somebody else may have its job; false if it was told before.
   */
  loseLease(): boolean {
    if (this.#leaseLost) return false;
    this.#leaseLost = true;
    if (this.#begunAt !== undefined && this.#timedOut === undefined) this.#awaitEnd(RELEASED);
    this.#abort.abort(new LeaseLostError());
    return true;
  }

  /** Ends the attempt without waiting for its target. */
  release(reason: unknown): void {
    this.#abortWith(RELEASED, reason);
  }

  /** Ends the attempt because its process ends; without an error it is one of those that may have caused that. */
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

  /** What its target threw; it is not to blame for the end of its lease, nor for what others did. */
  #thrown(error: unknown): Ended {
    return this.#leaseLost || error instanceof UncountedError ? RELEASED : this.#failure(error);
  }

  /** An end with what the attempt leaves behind. */
  #traced({ outcome, error }: Ended): Ended {
    const duration = Math.round(performance.now() - (this.#begunAt ?? 0));
    const { keptAttempts: kept = KEPT_ATTEMPTS } = this.#target;
    return { outcome: { ...outcome, trace: { duration, answer: this.#answer, kept } }, error };
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
      this.#endAs(ended);
    }, this.#target.timeout);
  }

  #abortWith(ended: Ended, reason: unknown): void {
    // First, because the target may end as soon as it is told.
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

/** A delivery that is older begins a trace of its own, with a link: those who keep traces have closed the first. */
const MAX_AGE = 3_600_000;

/**
 * Records each attempt as a span of the trace that its delivery came with, and those that are chosen of the others; after a replay or a retry much later as a
 * span of a new trace that is linked to it. What the target does is in the context of the span.
 */
export function attemptSpans(api: OpenTelemetryApi, isChosen: () => boolean): TraceTarget {
  const tracer = api.trace.getTracer(SCOPE);

  function begin(
    job: ClaimedJob,
    about: TargetAbout,
  ): { readonly span: Span; readonly active: ReturnType<typeof parentContext> } {
    const origin = readStoredTrace(job.delivery.trace);
    const isOld = Date.now() - job.delivery.receivedAt > MAX_AGE;
    const links: Link[] = origin !== undefined && isOld ? [{ context: spanContextOf(api, origin) }] : [];
    const parent = parentContext(api, isOld ? undefined : origin);
    const kind = about.url === undefined ? api.SpanKind.CONSUMER : api.SpanKind.CLIENT;
    const attributes = { ...messageAttributes(job), ...(about.url && clientAttributes(about.url)) };
    const name = about.url === undefined ? `process ${job.delivery.event ?? ''}` : 'POST';
    const span = tracer.startSpan(name.trimEnd(), { kind, attributes, links }, parent);
    return { span, active: api.trace.setSpan(parent, span) };
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

/** Without user, query and fragment, which may hold secrets. */
function clientAttributes({ origin, pathname, hostname, port, protocol }: URL) {
  return {
    'http.request.method': 'POST',
    'url.full': origin + pathname,
    'server.address': hostname,
    'server.port': Number(port || (protocol === 'https:' ? 443 : 80)),
  };
}

/** Makes a target that continues the trace of each delivery; `run` of the result gets the context of its own span. */
export type TraceTarget = (target: Target, about: TargetAbout) => Target;

/** What a span says of a target. */
interface TargetAbout {
  /** Where it sends; undefined for a handler. */
  readonly url?: URL | undefined;
}

/** Continues traces without recording spans: each attempt is a new span of the trace that its delivery came with. */
export const continueTrace: TraceTarget = (target) => ({
  ...target,
  run: (job, signal, answered) => target.run(withNextSpan(job), signal, answered),
});

function withNextSpan(job: ClaimedJob): ClaimedJob {
  const context = readStoredTrace(job.delivery.trace);
  return context === undefined ? job : withTrace(job, storedTrace(nextSpan(context)));
}

/** A job whose delivery has another trace. */
function withTrace(job: ClaimedJob, trace: string | null): ClaimedJob {
  return { ...job, delivery: { ...job.delivery, trace } };
}

/** The reason of the signal of an attempt whose job another process may have by now. */
export class LeaseLostError extends Error {
  override readonly name = 'LeaseLostError';
  readonly code = 'LEASE_LOST';

  constructor() {
    super('the lease of the delivery is lost or too old to be sure; another process may handle it now');
  }
}
