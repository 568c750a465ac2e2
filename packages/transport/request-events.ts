import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyReply } from 'fastify';

/** A reply that is complete: one of Fastify or of the fast path. `exchangeOf` describes it. */
type FinishedReply = FastifyReply | { exchange(): RecordedExchange };

/** Told once of each finished request of a route, with its duration in milliseconds. */
export type ReplyRecorder = (
  method: string,
  status: number,
  milliseconds: number,
  reply: FinishedReply,
) => void;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The fast path tells it of the route's requests; for those of Fastify a hook does. */
    record?: ReplyRecorder;
  }
}

/** Headers by name in lower case. */
type Headers = Readonly<Record<string, number | string | readonly string[] | undefined>>;

/** A request and its reply, secrets included: redact before showing. */
export interface RecordedExchange {
  /** The request's id. */
  readonly id: string;
  /** The client's address; empty on a Unix socket. */
  readonly client: string;
  /** The time at which the reply was complete, in milliseconds since 1970. */
  readonly endedAt: number;
  /** In milliseconds. */
  readonly duration: number;
  readonly method: string;
  readonly scheme: string;
  /** As the client sent it, so it may be any text. */
  readonly host: string;
  /** Path and query. */
  readonly target: string;
  /** Content-Type may be missing here; see `contentType`. */
  readonly requestHeaders: Readonly<IncomingHttpHeaders>;
  /** The request's Content-Type header; null if absent. */
  readonly contentType: string | null;
  /** The name of the authenticated token or user; undefined if the caller is unknown. */
  readonly caller: string | undefined;
  readonly status: number;
  /** The reply's headers, parsed on demand. */
  responseHeaders(): Headers;
}

/** A request as described by its span. */
export interface TracedRequest {
  readonly method: string;
  /** The route's path template; undefined if there is no route or it is not known yet. */
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
  /** Runs work within the span's context. */
  run<T>(work: () => T): T;
  /** Ends the span; the status is 0 if the client disconnected before the reply was sent. */
  end(status: number): void;
}

/** Records requests as spans. */
export interface RequestTracing {
  /** Starts a span; undefined if the request is not sampled. */
  begin(request: TracedRequest): RequestSpan | undefined;
}
