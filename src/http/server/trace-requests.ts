import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { RequestSpan, RequestTracing } from '../../observability/trace/request-tracing.ts';
import { isWhole } from './endless-reply.ts';

/** Records what Fastify answers as spans. Call it before any other hook is added. */
export function traceRequests(app: FastifyInstance, tracing: RequestTracing): void {
  const spans = new WeakMap<FastifyRequest, RequestSpan>();
  app.addHook('onRequest', (request, reply, done) => {
    const { method, originalUrl: target, protocol, ip: client = '', headers, is404 } = request;
    const span = tracing.begin({
      method,
      route: is404 ? undefined : request.routeOptions.url,
      target,
      scheme: protocol === 'https' ? 'https' : 'http',
      client,
      headers,
    });
    if (span === undefined) {
      done();
      return;
    }
    spans.set(request, span);
    // Fastify tells of no reply whose client has left.
    const { raw } = reply;
    const end = () => {
      raw.off('finish', end).off('close', end);
      span.end(isWhole(raw) ? reply.statusCode : 0);
    };
    raw.on('finish', end).on('close', end);
    span.run(done);
  });
  // A body arrives in the context of its connection.
  app.addHook('preHandler', (request, _reply, done) => {
    const span = spans.get(request);
    if (span === undefined) done();
    else span.run(done);
  });
}
