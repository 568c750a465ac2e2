import type { RouteHandlerMethod } from 'fastify';
import { HttpProblem } from '../../http/problem.ts';
import type { Tag } from '../../observability/metrics/meter.ts';
import type { Metrics } from '../../observability/metrics/metrics.ts';
import type { Endpoint } from '../endpoint.ts';
import { jsonBytes, replyJson } from '../json-reply.ts';
import { refuse } from '../management-errors.ts';
import { describeMetric } from '../metric-description.ts';
import { addReadRoute } from '../read-route.ts';

/** The metrics endpoint: the names of all meters (contract 2.4), and what each of them measured. */
export function metricsEndpoint(metrics: Metrics): Endpoint {
  return {
    id: 'metrics',
    about: 'The names of everything that is measured, and each measurement by its name.',
    links: [
      { name: 'metrics', path: '/metrics', templated: false },
      { name: 'metrics-requiredMetricName', path: '/metrics/{requiredMetricName}', templated: true },
    ],
    addRoutes(scope) {
      addReadRoute(scope, '/metrics', listNames(metrics));
      addReadRoute(scope, '/metrics/:name', (request, reply) => {
        const { name } = request.params as { readonly name: string };
        const tags = readTags(request.query);
        if (tags === undefined) return refuse(WRONG_TAG, request, reply);
        const meter = metrics.meter(name);
        const described = meter === undefined ? undefined : describeMetric(meter, tags);
        if (described === undefined) return refuse(NO_METER, request, reply);
        return replyJson(reply, jsonBytes(described));
      });
    },
  };
}

const NO_METER = new HttpProblem(404, 'NO_METER', 'There is no such meter, or none with these tags');
const WRONG_TAG = new HttpProblem(400, 'WRONG_TAG', 'Each tag parameter must be in the form key:value');

function listNames(metrics: Metrics): RouteHandlerMethod {
  let names: readonly string[] | undefined;
  let body: Buffer;
  return (_request, reply) => {
    const current = metrics.names();
    if (current !== names) {
      names = current;
      body = jsonBytes({ names });
    }
    return replyJson(reply, body);
  };
}

/** The `tag` parameters, of which an empty one counts for nothing; undefined when one is no `key:value`. */
function readTags(query: unknown): readonly Tag[] | undefined {
  const { tag: given = [] } = query as { readonly tag?: string | readonly string[] };
  const texts = [given].flat().filter((text) => text !== '');
  if (!texts.every((text) => text.includes(':'))) return undefined;
  return texts.map((text) => {
    const colon = text.indexOf(':');
    return { key: text.slice(0, colon), value: text.slice(colon + 1) };
  });
}
