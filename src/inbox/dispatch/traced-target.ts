import { nextSpan, readStoredTrace, storedTrace } from '../../observability/trace/trace-context.ts';
import type { ClaimedJob } from '../delivery.ts';
import type { Target } from './target.ts';

/** Makes a target that continues the trace of each delivery; `run` of the result gets the context of its own span. */
export type TraceTarget = (target: Target, about: TargetAbout) => Target;

/** What a span says of a target. */
export interface TargetAbout {
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
export function withTrace(job: ClaimedJob, trace: string | null): ClaimedJob {
  return { ...job, delivery: { ...job.delivery, trace } };
}
