import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Endpoint } from './endpoint.ts';
import { replyJson } from './json-reply.ts';
import { addReadRoute } from './read-route.ts';

const ORIGIN = '{origin}';
const HOST = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d+)?$/i;

/** Adds the page at the base path itself: absolute links to everything that is exposed. */
export function addDiscovery(scope: FastifyInstance, endpoints: readonly Endpoint[]): void {
  const pieces = linksOf(scope.prefix, endpoints).split(ORIGIN);
  addReadRoute(scope, '', (request, reply) => replyJson(reply, Buffer.from(pieces.join(originOf(request)))));
}

function linksOf(basePath: string, endpoints: readonly Endpoint[]): string {
  const link = (path: string, templated: boolean) => ({ href: `${ORIGIN}${basePath}${path}`, templated });
  const links = endpoints.flatMap((endpoint) => endpoint.links);
  return JSON.stringify({
    _links: {
      self: link('', false),
      ...Object.fromEntries(links.map(({ name, path, templated }) => [name, link(path, templated)])),
    },
  });
}

/** How the client reaches us, by its Host header; our own address when that is missing or no host at all. */
function originOf({ protocol, host, socket }: FastifyRequest): string {
  if (HOST.test(host)) return `${protocol}://${host}`;
  const { localAddress = 'localhost', localPort = 80 } = socket;
  return `${protocol}://${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}
