import { type TraceFields, traceFields } from './trace-fields.ts';

/** A request that log entries are about. */
interface LoggedRequest {
  readonly id: string;
  readonly headers: Readonly<Record<string, unknown>>;
}

/** The fields by which log entries name a request, and the trace that it came with. */
export function requestFields({ id, headers }: LoggedRequest): TraceFields & { readonly reqId: string } {
  return { reqId: id, ...traceFields(headers) };
}
