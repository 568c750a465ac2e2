import type { FastifyInstance } from 'fastify';
import { HttpProblem, reasonPhrase } from './problem.ts';

/**
 * Bounds the bytes of all request bodies that are in hand at the same time, so that many large ones together do not
 * exhaust memory. A request takes what its length says, or `bodyLimit` where it does not say; one that does not
 * fit is a 503 with Retry-After, before its body is read.
 */
export function limitBytesInFlight(app: FastifyInstance, maxBytes: number, bodyLimit: number): void {
  let inFlight = 0;
  app.addHook('preParsing', (request, reply, payload, done) => {
    const length = Number(request.headers['content-length'] ?? bodyLimit);
    const bytes = Math.min(length, bodyLimit);
    if (inFlight + bytes > maxBytes) {
      // The unread body would otherwise be taken for the next request.
      reply.header('connection', 'close');
      done(new HttpProblem(503, 'BUSY', reasonPhrase(503), { headers: { 'retry-after': '1' } }));
      return;
    }
    inFlight += bytes;
    // Comes in any case, also when the client goes away.
    reply.raw.once('close', () => {
      inFlight -= bytes;
    });
    done(null, payload);
  });
}
