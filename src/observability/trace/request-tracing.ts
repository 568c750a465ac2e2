import type { IncomingHttpHeaders } from 'node:http';

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
