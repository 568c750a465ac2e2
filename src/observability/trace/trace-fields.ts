import type { IncomingHttpHeaders } from 'node:http';
import {
  readStoredTrace,
  readTraceContext,
  storedTrace,
  type TraceContext,
  traceHeaders,
} from './trace-context.ts';

/** The fields of log entries that belong to a trace. */
export interface TraceFields {
  readonly traceId?: string;
  readonly spanId?: string;
}

const NONE: TraceFields = {};

/** Those of a request; none for one that came without a trace. */
export function traceFields(headers: Readonly<Record<string, unknown>>): TraceFields {
  return headers.traceparent === undefined ? NONE : fieldsOf(readTraceContext(headers.traceparent));
}

/** Those of what a trace was stored with. */
export function storedTraceFields(trace: string | null | undefined): TraceFields {
  return trace == null ? NONE : fieldsOf(readStoredTrace(trace));
}

function fieldsOf(context: TraceContext | undefined): TraceFields {
  return context === undefined ? NONE : { traceId: context.traceId, spanId: context.spanId };
}

/** The trace that a request came with, as it is stored; null without one. */
export function traceOfHeaders({
  headers,
}: {
  readonly headers: Readonly<IncomingHttpHeaders>;
}): string | null {
  if (headers.traceparent === undefined) return null;
  const context = readTraceContext(headers.traceparent, headers.tracestate);
  return context === undefined ? null : storedTrace(context);
}

/** The headers that continue a stored trace; none without one. */
export function headersOfTrace(trace: string | null | undefined): Readonly<Record<string, string>> {
  const context = readStoredTrace(trace);
  return context === undefined ? {} : traceHeaders(context);
}
