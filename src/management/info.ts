import type { Endpoint } from './endpoint.ts';
import { jsonBytes, replyJson } from './json-reply.ts';
import { addReadRoute } from './read-route.ts';

/** What runs here (contract 2.4). */
export interface Build {
  readonly version: string;
  readonly artifact: string;
  readonly name: string;
}

/** The info endpoint. */
export function infoEndpoint({ version, artifact, name }: Build): Endpoint {
  const body = jsonBytes({ build: { version, artifact, name } });
  return {
    id: 'info',
    links: [{ name: 'info', path: '/info', templated: false }],
    addRoutes(scope) {
      addReadRoute(scope, '/info', (_request, reply) => replyJson(reply, body));
    },
  };
}
