import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import type { FastifyBaseLogger } from 'fastify';
import type { MaybePromise } from '../../src/core/maybe-promise.ts';
import type { KnownCaller } from './caller.ts';
import type { Pieces } from './reply/reply-pieces.ts';

/** A request as an endpoint sees it, whichever transport brought it. */
export interface RequestContext {
  /** The request's id, as `x-request-id` and the log have it. */
  readonly id: string;
  readonly method: string;
  /** Path and query, as sent. */
  readonly target: string;
  /** The client's address, or what a trusted proxy says of it; empty on a Unix socket, and for a client that is gone. */
  readonly client: string;
  /** The host that the client asked for and perhaps a port, as Host or a trusted proxy has it; empty without one. */
  readonly host: string;
  /** By name in lower case. `content-type` is in `contentType` instead. */
  readonly headers: Readonly<IncomingHttpHeaders>;
  /** The Content-Type header as sent; null without one. */
  readonly contentType: string | null;
  /** The path's last segment, decoded, of a route that ends with a parameter or a wildcard; else empty. */
  readonly param: string;
  /** The parameters behind `?`, decoded; a name that comes more than once has an array. */
  readonly query: Readonly<Record<string, unknown>>;
  /** At most `bodyLimit` bytes; empty without a body. */
  readonly body: Buffer;
  /** Who makes the request, once that is known; it may become known before the body is read. */
  caller: KnownCaller | undefined;
  readonly log: FastifyBaseLogger;
  /**
   * Has the reply carry further header fields, whatever the reply is: such as endpoints do not send themselves, and Vary,
   * which is joined. Call it before the request is handled.
   */
  addHeaders(headers: Readonly<Record<string, string>>): void;
  /** Calls a listener once the reply is sent or the client is gone. */
  onClose(listener: () => void): void;
  /** The same, and also for a client that has closed its half a second ago; returns what takes it back. */
  onAbort(listener: () => void): () => void;
}

/** What an endpoint answers. */
export interface Reply {
  readonly status: number;
  /** The Content-Type header, sent as it stands; empty for none. */
  readonly type: string;
  /** Whole, or in pieces that are made while it is sent. */
  readonly body: string | Buffer | Pieces;
  /** Further header fields, by name in lower case. Nothing of a client's: the fast path writes them unchecked. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** The one implementation of a route. */
export interface Endpoint {
  /** Largest body in bytes; a larger one is a 413. 0 for a route that reads none. */
  readonly bodyLimit: number;
  /**
   * Judges a request by its head, before its body is used and mostly before it is read. `bodyLength` is the body's length
   * in bytes, or the limit where that is less or the length is not known. Throws or rejects with HttpProblem.
   */
  authorize?(ctx: RequestContext, bodyLength: number): MaybePromise<void>;
  /** Answers a request. Throws HttpProblem, or whatever is then a 500. */
  handle(ctx: RequestContext): MaybePromise<Reply>;
  /** Answers those requests whose body is read as it comes, without a limit; `handle` does not get them. */
  readonly streamed?: StreamedBodies;
}

/** How a route answers requests whose bodies it reads as they come. */
export interface StreamedBodies {
  /** Whether a request is one of these, as its head tells. */
  takes(request: Pick<RequestContext, 'headers' | 'contentType'>): boolean;
  /** Answers; the reply may begin before the body ends. What is left of a body is read and dropped. Throws as `Endpoint.handle`. */
  handle(ctx: RequestContext, body: Readable): MaybePromise<Reply>;
}
