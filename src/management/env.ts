import type { PropertySource } from '../config/property-source.ts';
import type { Endpoint } from './endpoint.ts';
import { jsonBytes, replyJson } from './json-reply.ts';
import { type ShowValues, shownValue } from './masking.ts';
import { addReadRoute } from './read-route.ts';

/** What the process was configured with. */
export interface Environment {
  readonly activeProfiles: readonly string[];
  readonly propertySources: readonly PropertySource[];
}

/** The env endpoint (contract 2.4). The environment is written down once: it does not change while we run. */
export function envEndpoint(environment: Environment, showValues: ShowValues): Endpoint {
  const body = jsonBytes(describeEnvironment(environment, showValues));
  return {
    id: 'env',
    links: [{ name: 'env', path: '/env', templated: false }],
    addRoutes(scope) {
      addReadRoute(scope, '/env', (_request, reply) => replyJson(reply, body));
    },
  };
}

function describeEnvironment({ activeProfiles, propertySources }: Environment, showValues: ShowValues) {
  return {
    activeProfiles,
    propertySources: propertySources.map(({ name, properties }) => ({
      name,
      properties: Object.fromEntries(
        Array.from(properties, ([key, property]) => [
          key,
          { value: shownValue(key, property, showValues), origin: property.origin },
        ]),
      ),
    })),
  };
}
