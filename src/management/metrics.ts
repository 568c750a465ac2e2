import type { Metrics } from '../observability/metrics.ts';
import type { Endpoint } from './endpoint.ts';
import { jsonBytes, replyJson } from './json-reply.ts';
import { addReadRoute } from './read-route.ts';

/** The metrics endpoint: the names of all meters (contract 2.4). */
export function metricsEndpoint(metrics: Metrics): Endpoint {
  let names: readonly string[] | undefined;
  let body: Buffer;
  return {
    id: 'metrics',
    links: [{ name: 'metrics', path: '/metrics', templated: false }],
    addRoutes(scope) {
      addReadRoute(scope, '/metrics', (_request, reply) => {
        const current = metrics.names();
        if (current !== names) {
          names = current;
          body = jsonBytes({ names });
        }
        return replyJson(reply, body);
      });
    },
  };
}
