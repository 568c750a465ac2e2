import type { FastifyInstance, FastifyRequest } from 'fastify';
import { formatPointer } from '../../core/json-pointer.ts';
import { HttpProblem } from '../../http/problem.ts';
import { parseDeliveryBody } from '../../inbox/delivery-body.ts';
import type { BodyCheck, Refusal } from '../schemes/scheme.ts';
import { readDelivery } from '../sources/read-delivery.ts';
import type { Source } from '../sources/source.ts';
import { TEXT_TYPE } from '../webhook-errors.ts';
import { type AcceptOptions, acceptDelivery, bodyOf, contentTypeOf } from './accept-delivery.ts';

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
  const usualPointer = formatPointer(source.data);
  const refuse = (reason: Refusal): HttpProblem => {
    options.onRefused(name, reason);
    return new HttpProblem(401, 'REFUSED', 'Unauthorized', { headers: { connection: 'close' } });
  };

  /** What checks the body of a request whose headers were in order. */
  const checks = new WeakMap<FastifyRequest, BodyCheck>();

  app.post(
    `/${name}`,
    {
      onRequest(request, _reply, done) {
        const step = verifier(request.headers, Date.now());
        if (typeof step !== 'function') return done(refuse(step.reason));
        checks.set(request, step);
        done();
      },
    },
    (request, reply) => {
      const body = bodyOf(request);
      const verdict = checks.get(request)?.(body);
      if (verdict?.ok !== true) throw refuse(verdict?.reason ?? 'no-signature');
      const contentType = contentTypeOf(request);
      const parsed = parseDeliveryBody({ source: name, contentType, body });
      const read = readDelivery(source, request.headers, parsed);
      if (read.kind === 'challenge') {
        reply.type(TEXT_TYPE).send(read.answer);
        return;
      }
      const { event, dedupKey } = read;
      const dataPointer = read.pointer === source.data ? usualPointer : formatPointer(read.pointer);
      return acceptDelivery(
        options,
        { source: name, event, dataPointer, dedupKey, contentType, body, parsed },
        reply,
      );
    },
  );
}
