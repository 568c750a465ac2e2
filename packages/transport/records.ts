import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { contentTypeOf } from './fastify.ts';

/** Header fields by name in lower case. */
type Headers = Readonly<Record<string, number | string | readonly string[] | undefined>>;

/** A request and its reply, secrets included: callers redact them before they show it. */
export interface RecordedExchange {
  /** The request's id. */
  readonly id: string;
  /** The client's address; empty on a Unix socket. */
  readonly client: string;
  /** When the reply was complete, in milliseconds since 1970. */
  readonly endedAt: number;
  /** In milliseconds. */
  readonly duration: number;
  readonly method: string;
  readonly scheme: string;
  /** As the client sent it, so it may be anything. */
  readonly host: string;
  /** Path and query. */
  readonly target: string;
  /** Perhaps without Content-Type. */
  readonly requestHeaders: Headers;
  /** The request's Content-Type header; null without one. */
  readonly contentType: string | null;
  readonly status: number;
  /** Parses them on demand. */
  responseHeaders(): Headers;
}

/** Gets the exchanges of a door. */
export interface ExchangeRecorder {
  record(exchange: RecordedExchange): void;
}

/** Keeps the last exchanges of all doors. */
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

  /** Records what an instance of Fastify answers; before it is ready. */
  listen(app: FastifyInstance): void {
    app.addHook('onResponse', (request, reply, done) => {
      this.record(recordOf(request, reply));
      done();
    });
  }

  /** The latest first. */
  latest(): readonly RecordedExchange[] {
    return [...this.#ring.slice(0, this.#next).reverse(), ...this.#ring.slice(this.#next).reverse()];
  }
}

/** What is recorded of a request that Fastify answered. */
export function recordOf(request: FastifyRequest, reply: FastifyReply): RecordedExchange {
  // Now, so that the exchange keeps no request with its body.
  const responseHeaders = reply.getHeaders();
  return {
    id: request.id,
    // Who connects on a Unix socket has none.
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
