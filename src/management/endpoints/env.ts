import { HttpProblem } from '../../http/problem.ts';
import type { ShowValue } from '../access/masking.ts';
import type { Endpoint } from '../endpoint.ts';
import { describeEnvironment, describeProperty, type Environment } from '../environment.ts';
import { jsonBytes, replyJson } from '../json-reply.ts';
import { NOT_FOUND } from '../management-errors.ts';
import { nameMatcher } from '../name-pattern.ts';
import { addReadRoute } from '../read-route.ts';

/** The env endpoint (contract 2.4). The environment is written down once: it does not change while we run. */
export function envEndpoint(environment: Environment, show: ShowValue): Endpoint {
  const body = jsonBytes(describeEnvironment(environment, show));
  const names = environment.propertySources.flatMap(({ properties }) => [...properties.keys()]);
  const match = nameMatcher();

  /** What a pattern leaves of it. */
  function bodyFor(pattern: unknown): Buffer {
    if (pattern === undefined || pattern === '') return body;
    if (typeof pattern !== 'string') throw new HttpProblem(400, 'TWO_PATTERNS', 'Give one pattern');
    const wanted = match(pattern, names);
    return jsonBytes(describeEnvironment(environment, show, (name) => wanted.has(name)));
  }

  return {
    id: 'env',
    about: 'Where every setting comes from, the strongest source first.',
    links: [
      { name: 'env', path: '/env', templated: false },
      { name: 'env-toMatch', path: '/env/{toMatch}', templated: true },
    ],
    addRoutes(scope) {
      addReadRoute(scope, '/env', (request, reply) => {
        const { pattern } = request.query as { readonly pattern?: unknown };
        return replyJson(reply, bodyFor(pattern));
      });
      addReadRoute(scope, '/env/:name', (request, reply) => {
        const { name } = request.params as { readonly name: string };
        const found = describeProperty(environment, name, show);
        if (found === undefined) throw NOT_FOUND;
        return replyJson(reply, jsonBytes(found));
      });
    },
  };
}
