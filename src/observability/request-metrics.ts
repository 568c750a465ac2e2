import type { FastifyInstance } from 'fastify';
import type { Metrics } from './metrics.ts';

/** Times every request of a door by its route template, never by its URL, which a client chooses. */
export function timeRequests(app: FastifyInstance, door: string, metrics: Metrics): void {
  const timer = metrics.timer('http.server.requests', {
    description: 'Requests by door, route, method and status',
    tags: ['door', 'uri', 'method', 'status'],
  });
  app.addHook('onResponse', (request, reply, done) => {
    const uri = request.routeOptions.url ?? 'none';
    timer
      .with('door', door, 'uri', uri, 'method', request.method, 'status', String(reply.statusCode))
      .record(reply.elapsedTime / 1_000);
    done();
  });
}
