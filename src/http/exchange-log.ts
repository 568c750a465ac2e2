import type { FastifyInstance } from 'fastify';

/** Header fields by their names in lower case. */
type Headers = Readonly<Record<string, number | string | readonly string[] | undefined>>;

/** A request and how it was answered, whole: whoever shows it leaves out what is secret. */
export interface Exchange {
  /** When the answer was complete, in milliseconds since 1970. */
  readonly endedAt: number;
  /** In milliseconds. */
  readonly duration: number;
  readonly method: string;
  readonly scheme: string;
  /** As the client sent it, so it may be anything. */
  readonly host: string;
  /** Path and query. */
  readonly target: string;
  readonly requestHeaders: Headers;
  readonly status: number;
  readonly responseHeaders: Headers;
}

/** Keeps the last exchanges of all instances that it listens to. */
export class ExchangeLog {
  readonly #capacity: number;
  readonly #ring: Exchange[] = [];
  #next = 0;

  constructor(capacity = 100) {
    this.#capacity = capacity;
  }

  /** Listens to an instance, before it is ready. */
  listen(app: FastifyInstance): void {
    app.addHook('onResponse', (request, reply, done) => {
      this.#ring[this.#next] = {
        endedAt: Date.now(),
        duration: reply.elapsedTime,
        method: request.method,
        scheme: request.protocol,
        host: request.host,
        target: request.originalUrl,
        requestHeaders: request.headers,
        status: reply.statusCode,
        responseHeaders: reply.getHeaders(),
      };
      this.#next = (this.#next + 1) % this.#capacity;
      done();
    });
  }

  /** The latest first. */
  latest(): readonly Exchange[] {
    return [...this.#ring.slice(0, this.#next).reverse(), ...this.#ring.slice(this.#next).reverse()];
  }
}
