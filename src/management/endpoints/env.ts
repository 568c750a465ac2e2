import { HttpProblem } from '../../http/problem.ts';
import type { ShowValue } from '../access/masking.ts';
import { describeEnvironment, describeProperty, type Environment } from '../environment.ts';
import type { ManagementEndpoint } from '../management-endpoint.ts';
import { NOT_FOUND } from '../management-errors.ts';
import { jsonReply, jsonTextReply } from '../replies.ts';

/** The env endpoint (contract 2.4). The environment is described once: it does not change while the process runs. */
export function envEndpoint(environment: Environment, show: ShowValue): ManagementEndpoint {
  const body = JSON.stringify(describeEnvironment(environment, show));

  /** The properties with names that contain the pattern, in any case; all of them without one. */
  function bodyFor(pattern: unknown): string {
    if (pattern === undefined || pattern === '') return body;
    if (typeof pattern !== 'string') throw new HttpProblem(400, 'TWO_PATTERNS', 'Give one pattern');
    const part = pattern.toLowerCase();
    const contains = (name: string) => name.toLowerCase().includes(part);
    return JSON.stringify(describeEnvironment(environment, show, contains));
  }

  return {
    id: 'env',
    about: 'Where every setting comes from, the strongest source first.',
    routes: () => ({
      '/env': { get: (exchange) => jsonTextReply(exchange, bodyFor(exchange.query.pattern)) },
      '/env/{toMatch}': {
        get(exchange) {
          const found = describeProperty(environment, exchange.param, show);
          if (found === undefined) throw NOT_FOUND;
          return jsonReply(exchange, found);
        },
      },
    }),
  };
}
