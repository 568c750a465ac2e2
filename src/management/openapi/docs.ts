import type { Reply, RequestContext } from '@portico/transport';
import type { FastifyRequest } from 'fastify';
import {
  assetReplies,
  builtPage,
  htmlPage,
  type Manifest,
  pageTags,
  readManifest,
} from '../../http/pages.ts';

import type { Exposed } from '../guard.ts';
import { COMMON_HEADERS, NOT_FOUND } from '../management-errors.ts';
import type { ManagementEndpoint } from '../operations.ts';
import type { DoorOptions } from '../options.ts';

const PAGE = {
  title: 'Portico: APIs',
  // Swagger UI writes style attributes at run time.
  policy: ["script-src 'self'", "style-src 'self' 'unsafe-inline'"],
} as const;

/** The page at `.../docs`; the URLs of its files are relative to its own. */
function docsPage(manifest: Manifest): Reply {
  return htmlPage({
    ...PAGE,
    head: pageTags('./docs/', manifest),
    content: `<header class="brand"><svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="8"/><path d="M8 25V16a8 8 0 0 1 16 0v9M13 25v-8a3 3 0 0 1 6 0v8"/></svg><strong>Portico</strong> APIs</header>
<div id="docs" data-spec="./docs/openapi"><p class="notice">Loading the reference…</p></div>
<noscript><p class="notice">This page needs JavaScript. The document is at <a href="./docs/openapi">docs/openapi</a>.</p></noscript>
`,
  });
}

/** The page to show while the real one is not built. */
function notBuiltPage(): Reply {
  return htmlPage({
    ...PAGE,
    head: '',
    content: `<h1>Portico: APIs</h1>
<p>This page is not built. Run <code>npm run build:pages</code> in Portico's folder and start again.</p>
<p>The document itself is at <a href="./docs/openapi">docs/openapi</a>.</p>
`,
  });
}

/** The docs endpoint: a page that shows the document of all doors, and loads nothing from other sites. */
export function docsEndpoint(documents: ApiDocuments, directory = builtPage('docs')): ManagementEndpoint {
  return {
    id: 'docs',
    about: 'The reference of all doors, as a page for browsers.',
    routes() {
      const manifest = readManifest(directory);
      const page = manifest === undefined ? notBuiltPage() : docsPage(manifest);
      const asset = manifest && assetReplies(manifest, directory);
      async function file(ctx: RequestContext): Promise<Reply> {
        if (ctx.param === 'openapi') return documentReply(documents, ctx);
        // For HEAD, Fastify would send the length of an empty body.
        const found = await asset?.(ctx.param, { method: 'GET', headers: ctx.headers });
        if (found === undefined) throw NOT_FOUND;
        return found;
      }
      return {
        '/docs': { get: () => page },
        '/docs/{file}': { get: file, fast: false },
      };
    },
  };
}

/** The openapi endpoint: requests and replies of the doors in OpenAPI 3.1; the schema of GraphQL in SDL. */
export function openApiEndpoint(documents: ApiDocuments): ManagementEndpoint {
  async function part(ctx: RequestContext): Promise<Reply> {
    const { param: door } = ctx;
    const sdl = door === 'graphql' ? documents.sdl() : undefined;
    if (sdl !== undefined) {
      return { status: 200, type: 'text/plain; charset=utf-8', body: sdl, headers: COMMON_HEADERS };
    }
    if (!documents.doors().includes(door)) throw NOT_FOUND;
    return documentReply(documents, ctx, door);
  }

  return {
    id: 'openapi',
    about: 'The API of each door: OpenAPI 3.1, and the schema of GraphQL.',
    routes: () => ({
      '/openapi': { get: (ctx) => documentReply(documents, ctx), fast: false },
      '/openapi/{door}': { get: part, fast: false },
    }),
  };
}

async function documentReply(documents: ApiDocuments, ctx: RequestContext, door?: string): Promise<Reply> {
  const body = JSON.stringify(await documents.document(ctx, door));
  return { status: 200, type: 'application/json', body, headers: COMMON_HEADERS };
}

/** The documents that describe the doors. They are created on request, and use no memory before. */
export class ApiDocuments {
  /** The exposed endpoints, once known. */
  exposed: readonly Exposed[] = [];
  readonly #options: DoorOptions;
  readonly #prefix: string;

  /** `prefix` precedes the paths of the endpoints as clients see them. */
  constructor(options: DoorOptions, prefix: string) {
    this.#options = options;
    this.#prefix = prefix;
  }

  /** The names of the described doors. */
  doors(): readonly string[] {
    return [...(this.#options.apis?.doors.keys() ?? []), 'management'];
  }

  /** The schema of the GraphQL door; undefined if the door is closed. */
  sdl(): string | undefined {
    return this.#options.apis?.sdl();
  }

  /** The document of one door, or of all. The request must have gone through Fastify. */
  async document(ctx: RequestContext, only?: string): Promise<object> {
    const { apis, endpoints, users, build } = this.#options;
    const { openApiDocument } = await import('../../http/openapi.ts');
    const { managementApi } = await import('./openapi.ts');
    const own = managementApi({ endpoints, users, prefix: this.#prefix, exposed: this.exposed });
    const others = await Promise.all(Array.from(apis?.doors.values() ?? [], ({ api }) => api()));
    const origin = originOf(ctx.request);
    const servers = Array.from(apis?.doors ?? [], ([door, { port }]) => [door, withPort(origin, port())]);
    return openApiDocument(
      [...others.flat(), own].filter(({ door }) => only === undefined || door === only),
      {
        title: build.name,
        version: build.version,
        servers: Object.fromEntries([...servers, ['management', origin]]),
      },
    );
  }
}

/** The same host with another port, if the client's way there reveals it. */
function withPort(origin: string, port: number | undefined): string {
  if (port === undefined) return origin;
  const url = new URL(origin);
  url.port = String(port);
  return url.origin;
}

const HOST = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d+)?$/i;

/** Scheme and host as a client or trusted proxy sent them; the own address if they are invalid. */
export function originOf({ protocol, host, socket }: FastifyRequest): string {
  const scheme = protocol === 'https' ? 'https' : 'http';
  if (HOST.test(host)) return `${scheme}://${host}`;
  const { localAddress = 'localhost', localPort = 80 } = socket;
  return `${scheme}://${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}
