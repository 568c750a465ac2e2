import type { Exchange } from '../../http/endpoint.ts';
import { HttpProblem } from '../../http/problem.ts';
import type { Tag } from '../../observability/metrics/meter.ts';
import type { Metrics } from '../../observability/metrics/metrics.ts';
import type { ManagementEndpoint } from '../management-endpoint.ts';
import { describeMetric } from '../metric-description.ts';
import type { Operation } from '../operations.ts';
import { jsonReply, jsonTextReply } from '../replies.ts';

/** The metrics endpoint: the names of all meters (contract 2.4), and the measurements of each. */
export function metricsEndpoint(metrics: Metrics): ManagementEndpoint {
  return {
    id: 'metrics',
    about: 'The names of all meters, and the measurements of each.',
    routes: () => ({
      '/metrics': { get: listNames(metrics) },
      '/metrics/{requiredMetricName}': {
        get(exchange) {
          const tags = readTags(exchange.query);
          const meter = metrics.meter(exchange.param);
          const described = meter === undefined ? undefined : describeMetric(meter, tags);
          if (described === undefined) throw NO_METER;
          return jsonReply(exchange, described);
        },
      },
    }),
  };
}

const NO_METER = new HttpProblem(404, 'NO_METER', 'There is no such meter, or none with these tags');
const WRONG_TAG = new HttpProblem(400, 'WRONG_TAG', 'Each tag parameter must be in the form key:value');

function listNames(metrics: Metrics): Operation {
  let names: readonly string[] | undefined;
  let body = '';
  return (exchange) => {
    const current = metrics.names();
    if (current !== names) {
      names = current;
      body = JSON.stringify({ names });
    }
    return jsonTextReply(exchange, body);
  };
}

/** The `tag` parameters; empty ones are ignored. Throws HttpProblem for one that is no `key:value`. */
function readTags(query: Exchange['query']): readonly Tag[] {
  const { tag: given = [] } = query as { readonly tag?: string | readonly string[] };
  const texts = [given].flat().filter((text) => text !== '');
  if (!texts.every((text) => text.includes(':'))) throw WRONG_TAG;
  return texts.map((text) => {
    const colon = text.indexOf(':');
    return { key: text.slice(0, colon), value: text.slice(colon + 1) };
  });
}
