import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { contentTypeOf } from './fastify.ts';

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
  readonly requestHeaders: Headers;
  /** The request's Content-Type header; null if absent. */
  readonly contentType: string | null;
  readonly status: number;
  /** The reply's headers, parsed on demand. */
  responseHeaders(): Headers;
}

/** Receives the exchanges of a door. */
export interface ExchangeRecorder {
  record(exchange: RecordedExchange): void;
}

/** Keeps the latest exchanges of all doors in a ring buffer. */
export class ExchangeLog implements ExchangeRecorder {
  readonly #capacity: number;
  readonly #ring: RecordedExchange[] = [];
  #next = 0;

  constructor(capacity = 100) {
    this.#capacity = capacity;
  }

  record(exchange: RecordedExchange): void {
    this.#ring[this.#next] = exchange;
    this.#next = (this.#next + 1) % this.#capacity;
  }

  /** Records the exchanges of a Fastify instance. Call it before the instance is ready. */
  listen(app: FastifyInstance): void {
    app.addHook('onResponse', (request, reply, done) => {
      this.record(recordOf(request, reply));
      done();
    });
  }

  /** The recorded exchanges, latest first. */
  latest(): readonly RecordedExchange[] {
    return [...this.#ring.slice(0, this.#next).reverse(), ...this.#ring.slice(this.#next).reverse()];
  }
}

/** The record of a request that Fastify answered. */
export function recordOf(request: FastifyRequest, reply: FastifyReply): RecordedExchange {
  // Read the headers now so that the record does not retain the request and its body.
  const responseHeaders = reply.getHeaders();
  return {
    id: request.id,
    // Clients of a Unix socket have no address.
    client: request.ip ?? '',
    endedAt: Date.now(),
    duration: reply.elapsedTime,
    method: request.method,
    scheme: request.protocol,
    host: request.host,
    target: request.originalUrl,
    requestHeaders: request.headers,
    contentType: contentTypeOf(request),
    status: reply.statusCode,
    responseHeaders: () => responseHeaders,
  };
}
