import type { IncomingHttpHeaders } from 'node:http';
import { type TraceFields, traceFields } from '../../src/core/trace.ts';

/** Called for each reply with the method, the status and how long it took in milliseconds. */
export type ReplyRecorder = (method: string, status: number, milliseconds: number) => void;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Times the replies of the route. */
    record?: ReplyRecorder;
  }
}

/** A request that was refused for who sent it, or how often. */
interface RefusedRequest {
  readonly id: string;
  /** The client's address; empty on a Unix socket. */
  readonly client: string;
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: Readonly<IncomingHttpHeaders>;
  readonly status: number;
  /** The name of the token or user whose credentials are good; undefined for nobody. */
  readonly caller: string | undefined;
  /** The code of the refusal. */
  readonly code: string;
}

/** Called for each of them, just before its reply is sent. */
export type OnRefused = (refused: RefusedRequest) => void;

/** Whether a reply says that its client may not, or not now. */
export function isAudited(status: number): boolean {
  return status === 401 || status === 403 || status === 429;
}

/** A request that log entries are about. */
interface LoggedRequest {
  readonly id: string;
  readonly headers: Readonly<Record<string, unknown>>;
}

/** The fields by which log entries name a request, and the trace that it came with. */
export function requestFields({ id, headers }: LoggedRequest): TraceFields & { readonly reqId: string } {
  return { reqId: id, ...traceFields(headers) };
}

/** A request as its span describes it. */
export interface TracedRequest {
  readonly method: string;
  /** The template of its route; undefined where there is none, or none is known yet. */
  readonly route: string | undefined;
  /** Path and query. */
  readonly target: string;
  readonly scheme: 'http' | 'https';
  /** The client's address; empty on a Unix socket. */
  readonly client: string;
  readonly headers: Readonly<IncomingHttpHeaders>;
}

/** The span of a request. */
export interface RequestSpan {
  /** Runs what belongs to the request. */
  run<T>(work: () => T): T;
  /** The reply is sent, or the client is gone: then the status is 0. */
  end(status: number): void;
}

/** Records requests as spans. */
export interface RequestTracing {
  /** Undefined for a request that is not recorded. */
  begin(request: TracedRequest): RequestSpan | undefined;
}
