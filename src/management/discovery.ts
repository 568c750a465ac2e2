import { prefersHtml, type Reply } from '@portico/transport';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type Linked, linksPage } from '../http/pages.ts';
import type { Build } from './endpoints/info.ts';
import type { Exposed } from './guard.ts';
import { jsonTextReply, MEDIA_TYPES, NEGOTIATED_HEADERS } from './management-errors.ts';
import { addOperations, type Operation } from './operations.ts';

const ORIGIN = '{origin}';

/**
 * Adds the base path itself: absolute links to everything exposed, and a page for browsers. Only that page
 * lists `pages`.
 */
export function addDiscovery(
  scope: FastifyInstance,
  endpoints: readonly Exposed[],
  build: Build,
  pages: readonly PageLink[] = [],
): void {
  const pieces = linksOf(scope.prefix, endpoints).split(ORIGIN);
  const page = discoveryPage(scope.prefix, endpoints, build, pages);
  const get: Operation = (ctx) => {
    if (prefersHtml(ctx.headers.accept, MEDIA_TYPES)) return page;
    return { ...jsonTextReply(ctx, pieces.join(originOf(ctx.request))), headers: NEGOTIATED_HEADERS };
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

/** Named as in Actuator: `/env/{toMatch}` is `env-toMatch`. */
function linkName(path: string): string {
  return path.slice(1).replace(/\/\{\*?(.*)\}$/, '-$1');
}

/** A page for people below the base path. */
interface PageLink {
  readonly path: string;
  readonly about: string;
}

/** The page at the base path for browsers: each endpoint with a line about it. */
function discoveryPage(
  prefix: string,
  endpoints: readonly Exposed[],
  { name, version }: Build,
  pages: readonly PageLink[] = [],
): Reply {
  // Relative to the page's own URL, so that links also work behind a proxy that adds a prefix.
  const base = `.${prefix.slice(prefix.lastIndexOf('/'))}`;
  const page = linksPage(
    `${name} ${version}`,
    'Management endpoints. Programs get these links as JSON from the same address.',
    [
      ...pages.map(({ path, about }) => ({ paths: [{ text: prefix + path, href: base + path }], about })),
      ...endpoints.map((endpoint) => linked(endpoint, base, prefix)),
    ],
  );
  return { ...page, headers: { ...NEGOTIATED_HEADERS, ...page.headers } };
}

/** Whether a path contains a placeholder, so that it cannot be a link. */
function isTemplate(path: string): boolean {
  return path.includes('{');
}

function linked({ about, routes }: Exposed, base: string, prefix: string): Linked {
  const paths = Object.entries(routes).map(([path, { get }]) => {
    const text = prefix + path;
    if (get === undefined) return { text: `POST ${text}` };
    return { text, href: isTemplate(path) ? undefined : base + path };
  });
  return { paths, about };
}

const HOST = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d+)?$/i;

/**
 * Scheme and host as the client, or a trusted proxy, sent them; the door's own address if that is no valid
 * host.
 */
export function originOf({ protocol, host, socket }: FastifyRequest): string {
  const scheme = protocol === 'https' ? 'https' : 'http';
  if (HOST.test(host)) return `${scheme}://${host}`;
  const { localAddress = 'localhost', localPort = 80 } = socket;
  return `${scheme}://${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}
