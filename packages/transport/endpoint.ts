import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import type { FastifyBaseLogger, FastifyRequest } from 'fastify';
import type { MaybePromise } from '../../src/core/scheduler.ts';
import type { KnownCaller } from './caller.ts';
import type { EventStream, Pieces } from './reply/reply-streams.ts';
import type { ProtocolSwitch } from './server/door-server.ts';

/** A request as an endpoint sees it, independent of the transport. */
export interface RequestContext {
  /** The request's id, as sent in `x-request-id` and logged. */
  readonly id: string;
  readonly method: string;
  /** Path and query, as sent. */
  readonly target: string;
  /**
   * The client's address, or the address that a trusted proxy forwards; empty on a Unix socket or if the
   * client has disconnected.
   */
  readonly client: string;
  /** The requested host with its optional port, from Host or a trusted proxy; empty if there is none. */
  readonly host: string;
  /** By name in lower case. `content-type` is left out; see `contentType`. */
  readonly headers: Readonly<IncomingHttpHeaders>;
  /** The Content-Type header as sent; null if absent. */
  readonly contentType: string | null;
  /** The decoded last path segment if the route ends with a parameter or a wildcard; otherwise empty. */
  readonly param: string;
  /** The decoded query parameters; a repeated name has an array. */
  readonly query: Readonly<Record<string, unknown>>;
  /** At most `bodyLimit` bytes; empty if there is no body, or if the endpoint streams it. */
  readonly body: Buffer;
  /**
   * The body as it arrives, if `Endpoint.body` is `stream` for this request. The unread rest is read and
   * discarded after the reply.
   */
  readonly stream: Readable;
  /** Fastify's own request. Throws TypeError on the fast path: only for endpoints added with `fast: false`. */
  readonly request: FastifyRequest;
  /** The authenticated caller, once known; it may be known before the body is read. */
  caller: KnownCaller | undefined;
  readonly log: FastifyBaseLogger;
  /**
   * Adds headers to the reply, whatever its status: only headers that no endpoint sends itself, and Vary,
   * which is merged. Call it before the request is handled.
   */
  addHeaders(headers: Readonly<Record<string, string>>): void;
  /** Calls a listener once the reply is sent or the client has disconnected. */
  onClose(listener: () => void): void;
  /**
   * Like `onClose`, but also calls the listener one second after the client closes its half of the
   * connection. Returns a function that removes the listener.
   */
  onAbort(listener: () => void): () => void;
}

/** An endpoint's reply. A reply to HEAD has the head of the reply to GET, and its body is not sent. */
export interface Reply {
  readonly status: number;
  /** The Content-Type header, sent verbatim; empty for none. */
  readonly type: string;
  /**
   * The whole body; or pieces, each produced once the client has taken the previous one; or events. Only
   * endpoints added with `fast: false`, and requests that accept an event stream, may be answered with events.
   */
  readonly body: string | Buffer | Pieces | EventStream | ProtocolSwitch;
  /**
   * Further headers, by name in lower case. Never put client input here: the fast path writes them unchecked.
   */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** The implementation of a route, shared by both transports. */
export interface Endpoint {
  /** Maximum size of a buffered body in bytes; a larger one is refused with 413. 0 if the route reads none. */
  readonly bodyLimit: number;
  /**
   * Authorizes a request by its head, before its body is used and usually before it is read. `bodyLength` is
   * the body's length in bytes, capped at the limit; it is the limit if the length is unknown. Throws or
   * rejects with HttpProblem.
   */
  authorize?(ctx: RequestContext, bodyLength: number): MaybePromise<void>;
  /**
   * How the endpoint receives the body of a request, judged by its head: whole in `ctx.body` (`buffer`, the
   * default), or as it arrives and without a size limit in `ctx.stream`.
   */
  body?(request: Pick<RequestContext, 'headers' | 'contentType'>): 'buffer' | 'stream';
  /** Answers a request. Throws HttpProblem; any other error becomes a 500. */
  handle(ctx: RequestContext): MaybePromise<Reply>;
}
