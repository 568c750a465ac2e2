import type { Context, SpanContext } from '@opentelemetry/api';
import type { TraceContext } from '../trace/trace-context.ts';
import type { OpenTelemetryApi } from './load-api.ts';

/** The name under which Portico's spans and meters are known. */
export const SCOPE = 'portico';

/** A context of W3C as OpenTelemetry has it. */
export function spanContextOf(
  { createTraceState }: OpenTelemetryApi,
  { traceId, spanId, flags, state }: TraceContext,
): SpanContext {
  const context = { traceId, spanId, traceFlags: flags, isRemote: true };
  return state === undefined ? context : { ...context, traceState: createTraceState(state) };
}

/** The reverse. */
export function traceContextOf({ traceId, spanId, traceFlags, traceState }: SpanContext): TraceContext {
  const state = traceState?.serialize();
  return { traceId, spanId, flags: traceFlags, state: state === '' ? undefined : state };
}

/** What a span whose parent is that context begins in; a new trace without one. */
export function parentContext(api: OpenTelemetryApi, parent: TraceContext | undefined): Context {
  if (parent === undefined) return api.ROOT_CONTEXT;
  return api.trace.setSpanContext(api.ROOT_CONTEXT, spanContextOf(api, parent));
}
