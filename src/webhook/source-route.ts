import type { FastifyInstance } from 'fastify';
import { parseJsonBody } from '../http/json-body.ts';
import { formatPointer } from '../http/json-pointer.ts';
import { HttpProblem } from '../http/problem.ts';
import { type AcceptOptions, acceptDelivery, bodyOf } from './accept-delivery.ts';
import { TEXT_TYPE } from './error-format.ts';
import { type Refusal, verify } from './schemes/scheme.ts';
import { readDelivery } from './sources/read-delivery.ts';
import type { Source } from './sources/source.ts';

export interface SourceRouteOptions extends AcceptOptions {
  /** Told why a request of a source was refused. */
  onRefused(source: string, reason: Refusal): void;
}

/**
 * Adds the path of a signed source: what its headers alone give away is refused before the body is read, the
 * signature is checked on the body as it came, and only then is the body parsed.
 */
export function addSourceRoute(app: FastifyInstance, source: Source, options: SourceRouteOptions): void {
  const { name, verifier } = source;
  const dataPointer = formatPointer(source.data);
  const refuse = (reason: Refusal): HttpProblem => {
    options.onRefused(name, reason);
    return new HttpProblem(401, 'REFUSED', 'Unauthorized', { headers: { connection: 'close' } });
  };

  app.post(
    `/${name}`,
    {
      onRequest(request, _reply, done) {
        const step = verifier(request.headers, Date.now());
        done(typeof step === 'function' ? undefined : refuse(step.reason));
      },
    },
    async (request, reply) => {
      const body = bodyOf(request);
      const verdict = verify(verifier, request.headers, body, Date.now());
      if (!verdict.ok) throw refuse(verdict.reason);
      const parsed = parseJsonBody(body);
      const read = readDelivery(source, request.headers, parsed);
      if (read.kind === 'challenge') return reply.type(TEXT_TYPE).send(read.answer);
      const { event, dedupKey } = read;
      return acceptDelivery(
        options,
        { source: name, event, dataPointer, dedupKey, body, parsed },
        request,
        reply,
      );
    },
  );
}
