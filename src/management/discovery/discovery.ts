import type { FastifyInstance } from 'fastify';
import { prefersHtml } from '../../http/accept.ts';
import type { Endpoint } from '../endpoint.ts';
import type { Build } from '../endpoints/info.ts';
import { replyJson } from '../json-reply.ts';
import { MEDIA_TYPES } from '../media-type.ts';
import { addReadRoute } from '../read-route.ts';
import { type DiscoveryPage, discoveryPage } from './discovery-page.ts';
import { type OriginOf, originReader } from './origin.ts';

export interface DiscoveryOptions {
  readonly build: Build;
  /** Whether a proxy's word on the original request counts; false when absent. */
  readonly trustForwarded?: boolean | undefined;
}

const ORIGIN = '{origin}';

/** Adds what stands at the base path itself: absolute links to all that is exposed, and a page for browsers. */
export function addDiscovery(
  scope: FastifyInstance,
  endpoints: readonly Endpoint[],
  { build, trustForwarded = false }: DiscoveryOptions,
): void {
  const originOf: OriginOf = originReader(trustForwarded);
  const pieces = linksOf(scope.prefix, endpoints).split(ORIGIN);
  const page: DiscoveryPage = discoveryPage(scope.prefix, endpoints, build);
  addReadRoute(scope, '', (request, reply) => {
    reply.header('vary', 'accept');
    if (prefersHtml(request.headers.accept, MEDIA_TYPES)) return reply.headers(page.headers).send(page.html);
    return replyJson(reply, Buffer.from(pieces.join(originOf(request))));
  });
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
