import type { FastifyInstance } from 'fastify';
import { HttpProblem, reasonPhrase } from '../problem.ts';

/** Bounds the bytes of all request bodies that are in hand at the same time, so that many large ones together do not exhaust memory. */
export class ByteBudget {
  readonly #maxBytes: number;
  #inFlight = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  hasRoomFor(bytes: number): boolean {
    return this.#inFlight + bytes <= this.#maxBytes;
  }

  /** Takes what `exchange` needs, and gives it back when that is closed: it is in any case, also when the client goes away. */
  take(bytes: number, exchange: { once(event: 'close', listener: () => void): unknown }): void {
    this.#inFlight += bytes;
    exchange.once('close', () => {
      this.#inFlight -= bytes;
    });
  }
}

/**
 * Has every request of this scope take from a budget what its length says, or `bodyLimit` where it does not say; one
 * that does not fit is a 503 with Retry-After, before its body is read.
 */
export function limitBytesInFlight(app: FastifyInstance, budget: ByteBudget, bodyLimit: number): void {
  app.addHook('preParsing', (request, reply, payload, done) => {
    const length = Number(request.headers['content-length'] ?? bodyLimit);
    const bytes = Math.min(length, bodyLimit);
    if (!budget.hasRoomFor(bytes)) {
      // The unread body would otherwise be taken for the next request.
      reply.header('connection', 'close');
      done(new HttpProblem(503, 'BUSY', reasonPhrase(503), { headers: { 'retry-after': '1' } }));
      return;
    }
    budget.take(bytes, reply.raw);
    done(null, payload);
  });
}
