import {
  addEndpoint,
  type Endpoint,
  type ErrorFormat,
  HttpProblem,
  PROBLEM_TYPE,
  type Reply,
  type RequestContext,
  readRawBodies,
  refuseUnrouted,
} from '@portico/transport';
import type { FastifyPluginAsync } from 'fastify';
import { ClientRate } from '../access/rates.ts';
import { type MaybePromise, whenReady } from '../core/scheduler.ts';
import {
  assetReplies,
  builtPage,
  escapeHtml,
  htmlPage,
  linksPage,
  pageTags,
  readManifest,
} from '../http/pages.ts';
import type { SendingApi } from '../sending/api.ts';
import type { PortalLinks } from './links.ts';

/** The options of the portal. */
interface PortalOptions {
  readonly api: SendingApi;
  readonly links: PortalLinks;
  /** The title of the page. */
  readonly title: string;
  /** The names of the transformations that endpoints may have. */
  readonly transforms: readonly string[];
  /** The origins whose pages may embed it; empty for none. */
  readonly origins: readonly string[];
}

/** Largest body of a request in bytes. */
const BODY_LIMIT = 64 * 1024;
/** Requests of one tenant: a page makes a few at a time, and reads again while a replay goes on. */
const RATE = { limit: 20, windowMs: 1_000, burst: 100 } as const;
/** The first segments of the paths of a tenant. */
const OWN = ['endpoints', 'events'];

/** Refusals of the portal are problem details. */
export const portalErrors: ErrorFormat = {
  contentType: PROBLEM_TYPE,
  hasProblems: () => true,
  body: ({ message }) => JSON.stringify({ detail: message }),
};

// Created once, because the stack of a refusal is not used.
const NO_PASS = new HttpProblem(
  401,
  'UNAUTHORIZED',
  'The link has expired or is not valid; ask for a new one',
  {
    headers: { 'www-authenticate': 'Bearer' },
  },
);
const NO_PATH = new HttpProblem(404, 'NO_ENDPOINT', 'The portal has no such path');

/** The portal of customers as a Fastify plugin: one page, and the endpoints and events of the tenant of a link. */
export const portal: FastifyPluginAsync<PortalOptions> = async (app, options) => {
  const { api, links, title, transforms, origins } = options;
  const rate = new ClientRate(RATE);
  readRawBodies(app);
  refuseUnrouted(app, portalErrors);
  const directory = builtPage('portal');
  const manifest = readManifest(directory);
  const page = framedBy(
    manifest === undefined
      ? linksPage(title, 'The page is not built; run npm run build:pages.', [])
      : htmlPage({
          title: escapeHtml(title),
          policy: ["script-src 'self'", "style-src 'self'"],
          head: pageTags('./assets/', manifest),
          content: '<div id="portal"></div>\n',
        }),
    origins,
  );
  addEndpoint(app, 'GET', '/', { bodyLimit: 0, handle: () => page });
  if (manifest !== undefined) {
    const files = assetReplies(manifest, directory);
    addEndpoint(
      app,
      'GET',
      '/assets/:name',
      {
        bodyLimit: 0,
        async handle({ param, method, headers }) {
          const found = await files(param, { method, headers });
          if (found === undefined) throw NO_PATH;
          return found;
        },
      },
      { fast: false },
    );
  }

  /** The tenants of requests that were let in. */
  const passes = new WeakMap<RequestContext, string>();
  function authorize(ctx: RequestContext): MaybePromise<void> {
    const [, token = ''] = /^Bearer (\S+)$/i.exec(ctx.headers.authorization ?? '') ?? [];
    return whenReady(links.read(token, Date.now()), (pass) => {
      if (pass === undefined) throw NO_PASS;
      const refusal = rate.refusalOf(rate.take(pass.tenant, performance.now()));
      if (refusal !== undefined) throw refusal;
      passes.set(ctx, pass.tenant);
    });
  }
  function handle(ctx: RequestContext): MaybePromise<Reply> {
    const tenant = passes.get(ctx);
    if (tenant === undefined) throw NO_PASS;
    const [first = ''] = ctx.param.split('/');
    if (ctx.param === 'me')
      return { status: 200, type: 'application/json', body: JSON.stringify({ tenant, title, transforms }) };
    if (first === 'event-types' && (ctx.method === 'GET' || ctx.method === 'HEAD'))
      return api.handle(ctx, ctx.param);
    if (!OWN.includes(first)) throw NO_PATH;
    return api.handle(ctx, `tenants/${tenant}/${ctx.param}`);
  }
  for (const method of ['GET', 'POST', 'PATCH', 'DELETE'] as const) {
    const endpoint: Endpoint = { bodyLimit: method === 'GET' ? 0 : BODY_LIMIT, authorize, handle };
    addEndpoint(app, method, '/api/*', endpoint, { fast: false });
  }
};

/** A page that pages of these origins may embed. */
function framedBy(page: Reply, origins: readonly string[]): Reply {
  const ancestors = origins.length === 0 ? "'none'" : origins.join(' ');
  const policy = page.headers?.['content-security-policy'] ?? '';
  return {
    ...page,
    headers: {
      ...page.headers,
      'content-security-policy': policy.replace(/frame-ancestors [^;]*/, `frame-ancestors ${ancestors}`),
    },
  };
}
