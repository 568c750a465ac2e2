import type { FastifyInstance } from 'fastify';
import { prefersHtml } from '../../http/accept.ts';
import type { FastifyExchange } from '../../http/fastify-exchange.ts';
import type { Exposed } from '../access/exposure.ts';
import type { Build } from '../endpoints/info.ts';
import { MEDIA_TYPES } from '../media-type.ts';
import { addOperations, type Operation } from '../operations.ts';
import { jsonTextReply, NEGOTIATED_HEADERS } from '../replies.ts';
import { discoveryPage, isTemplate, type PageLink } from './discovery-page.ts';
import { originOf } from './origin.ts';

const ORIGIN = '{origin}';

/**
 * Adds the base path itself: absolute links to everything exposed, and a page for browsers. `pages` are those for people,
 * which only that page names.
 */
export function addDiscovery(
  scope: FastifyInstance,
  endpoints: readonly Exposed[],
  build: Build,
  pages: readonly PageLink[] = [],
): void {
  const pieces = linksOf(scope.prefix, endpoints).split(ORIGIN);
  const page = discoveryPage(scope.prefix, endpoints, build, pages);
  const get: Operation = (exchange) => {
    if (prefersHtml(exchange.headers.accept, MEDIA_TYPES)) return page;
    const { request } = exchange as FastifyExchange;
    return { ...jsonTextReply(exchange, pieces.join(originOf(request))), headers: NEGOTIATED_HEADERS };
  };
  addOperations(scope, '', { get, fast: false });
}

function linksOf(basePath: string, endpoints: readonly Exposed[]): string {
  const link = (path: string) => ({ href: `${ORIGIN}${basePath}${path}`, templated: isTemplate(path) });
  const links = endpoints.flatMap(({ routes }) =>
    Object.keys(routes).map((path) => [linkName(path), link(path)]),
  );
  return JSON.stringify({ _links: { self: link(''), ...Object.fromEntries(links) } });
}

/** Named as by Actuator: `/env/{toMatch}` is `env-toMatch`. */
function linkName(path: string): string {
  return path.slice(1).replace(/\/\{\*?(.*)\}$/, '-$1');
}
