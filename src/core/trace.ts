import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/** The trace context of a request (W3C Trace Context). */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** The span that made the request: 16 hexadecimal digits. */
  readonly spanId: string;
  /** From 0 to 255; the lowest bit says whether the trace is sampled. */
  readonly flags: number;
  /** Vendor-specific state, passed on unchanged. */
  readonly state: string | undefined;
}

const PARENT = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-[!-~]*)?$/;
const NO_TRACE = '0'.repeat(32);
const NO_SPAN = '0'.repeat(16);
/** The flags of version 00 of the format: sampled and random. */
const KNOWN_FLAGS = 0b11;
/** Maximum length of a traceparent; a longer one, of a later version, is ignored. */
const MAX_PARENT = 512;

const MAX_STATE = 512;
const MAX_MEMBERS = 32;
const KEY = /^(?:[a-z][\w\-*/]{0,255}|[a-z\d][\w\-*/]{0,240}@[a-z][\w\-*/]{0,13})$/;
const VALUE = /^[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/** Reads traceparent and tracestate; undefined if the parent is invalid (W3C Trace Context 3.2). */
export function readTraceContext(parent: unknown, state?: unknown): TraceContext | undefined {
  if (typeof parent !== 'string' || parent.length > MAX_PARENT) return undefined;
  const [, version = '', traceId = '', spanId = '', flags = '', more] = PARENT.exec(parent) ?? [];
  if (traceId === '' || version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  if (traceId === NO_TRACE || spanId === NO_SPAN) return undefined;
  const known = Number.parseInt(flags, 16) & KNOWN_FLAGS;
  return { traceId, spanId, flags: known, state: readState(state) };
}

/** A valid tracestate without empty members and blanks; undefined if it is invalid or empty. */
function readState(state: unknown): string | undefined {
  // Node joins fields of the same name.
  if (typeof state !== 'string' || state.length > MAX_STATE) return undefined;
  const members = state.split(',').map((member) => member.replace(/^[ \t]+|[ \t]+$/g, ''));
  const given = members.filter((member) => member !== '');
  if (given.length === 0 || given.length > MAX_MEMBERS) return undefined;
  const keys = new Set<string>();
  for (const member of given) {
    const equals = member.indexOf('=');
    const key = member.slice(0, Math.max(equals, 0));
    if (!KEY.test(key) || !VALUE.test(member.slice(equals + 1)) || keys.has(key)) return undefined;
    keys.add(key);
  }
  return given.join(',');
}

/** The header traceparent of a context. */
export function traceparentOf({ traceId, spanId, flags }: TraceContext): string {
  return `00-${traceId}-${spanId}-${flags.toString(16).padStart(2, '0')}`;
}

/** The headers that propagate a context. */
export function traceHeaders(context: TraceContext): Readonly<Record<string, string>> {
  const traceparent = traceparentOf(context);
  return context.state === undefined ? { traceparent } : { traceparent, tracestate: context.state };
}

/** The context of a new span in the same trace. */
export function nextSpan(context: TraceContext): TraceContext {
  return { ...context, spanId: newSpanId() };
}

function newSpanId(): string {
  for (;;) {
    const id = randomBytes(8).toString('hex');
    if (id !== NO_SPAN) return id;
  }
}

/** Serialises a context for the database. */
export function storedTrace(context: TraceContext): string {
  const parent = traceparentOf(context);
  return context.state === undefined ? parent : `${parent} ${context.state}`;
}

/** The inverse of `storedTrace`; undefined for other texts. */
export function readStoredTrace(text: string | null | undefined): TraceContext | undefined {
  if (text == null) return undefined;
  const space = text.indexOf(' ');
  return space === -1
    ? readTraceContext(text)
    : readTraceContext(text.slice(0, space), text.slice(space + 1));
}

/** The fields by which log entries refer to a trace. */
export interface TraceFields {
  readonly traceId?: string;
  readonly spanId?: string;
}

const NONE: TraceFields = {};

/** The trace fields of a request; empty if it came without a trace. */
export function traceFields(headers: Readonly<Record<string, unknown>>): TraceFields {
  return headers.traceparent === undefined ? NONE : fieldsOf(readTraceContext(headers.traceparent));
}

/** A request to log about. */
interface LoggedRequest {
  readonly id: string;
  readonly headers: Readonly<Record<string, unknown>>;
}

/** The log fields that identify a request and its trace. */
export function requestFields({ id, headers }: LoggedRequest): TraceFields & { readonly reqId: string } {
  return { reqId: id, ...traceFields(headers) };
}

/** The trace fields of a stored trace. */
export function storedTraceFields(trace: string | null | undefined): TraceFields {
  return trace == null ? NONE : fieldsOf(readStoredTrace(trace));
}

function fieldsOf(context: TraceContext | undefined): TraceFields {
  return context === undefined ? NONE : { traceId: context.traceId, spanId: context.spanId };
}

/** The trace of a request in its stored form; null without one. */
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
