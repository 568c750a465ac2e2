import {
  createFindOperation,
  type DocumentLimits,
  type DocumentSource,
  type OperationMeters,
  type OperationOutcome,
  type ResultLimits,
} from '@portico/graphql-plans';
import {
  addEndpoint,
  type Endpoint,
  HttpProblem,
  type KnownCaller,
  offeredUpgrade,
  type Reply,
  ReplyBudget,
  type RequestContext,
  readRawBodies,
  reasonPhrase,
  refuseUnrouted,
  send,
} from '@portico/transport';
import type { FastifyPluginAsync, FastifyPluginCallback, FastifyRequest } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import { addPreflights, type CorsOptions, corsPolicy, refuseCrossSite } from '../access/cors.ts';
import { guarded, pluginPolicy } from '../access/guarded.ts';
import type { ApiOptions } from '../access/open-policy.ts';
import type { AccessPolicy } from '../access/policy.ts';
import { defaultsOf } from '../config/options/options.ts';
import { prefersHtml } from '../core/negotiation.ts';
import {
  assetReplies,
  assetsBase,
  builtPage,
  escapeHtml,
  htmlPage,
  type Manifest,
  pageTags,
  readManifest,
} from '../http/pages.ts';
import type { RowRules } from '../relations/rules/views.ts';
import { withStatementBudget } from '../relations/selections/statement-budget.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { ContextDetails } from './config.ts';
import { type Examples, examplesOf } from './graphiql/examples.ts';
import type { WebSocketLimits } from './operation-slots.ts';
import {
  acceptsEvents,
  contextWithCaller,
  graphqlErrors,
  RESULT_TYPES,
  RequestLifetime,
  type RunOptions,
  runRequest,
} from './requests.ts';
import { openWebSockets } from './web-sockets.ts';

const ALLOW = 'GET, HEAD, POST, OPTIONS';

/** The GraphQL door (CONTRACT.md#graphql-operations, GraphQL over HTTP) as a Fastify plugin. */
export const graphql: FastifyPluginAsync<GraphqlOptions> = async (app, given) => {
  const options = withDefaults(given);
  const { path, context, contextValue, maxBodyBytes, maxBatch } = options;
  const policy = await pluginPolicy(app, options.api, options.rules !== undefined);
  const cors = corsPolicy(options.cors);
  // The page needs no credentials, so it must not tell more of the schema than clients without them may ask.
  const isOpen = options.introspection && policy === undefined;
  const graphiql = openGraphiql(path, { examples: isOpen ? examplesOf(options.schema) : undefined });
  const budget = ReplyBudget.of(app);
  const run: RunOptions = {
    findOperation: createFindOperation({
      ...options,
      meters: options.metrics && operationMeters(options.metrics),
      around: withStatementBudget,
    }),
    maxBatch,
    policy,
    rules: options.rules,
    cors,
    // A context function needs Fastify's own request, so the fast path is disabled for such a door.
    contextOf:
      context === undefined
        ? contextWithCaller(contextValue, policy, options.callerContext)
        : (ctx, { recipient = ctx, connectionParams } = {}) =>
            context(ctx.request, new RequestLifetime(recipient, connectionParams, ctx.caller)),
  };

  readRawBodies(app);
  refuseUnrouted(app, graphqlErrors, { [path]: ALLOW }, cors);
  const sockets = openWebSockets(app, options, run, budget);
  app.addHook('preClose', (done) => {
    sockets?.end();
    done();
  });
  app.register(graphiql.assets);
  addEndpoint(app, 'GET', path, getEndpoint(run, graphiql.page, sockets), { fast: false });
  addEndpoint(app, 'POST', path, postEndpoint(run, maxBodyBytes), { fast: context === undefined });
  addPreflights(app, cors, (scope) => {
    scope.options(path, (_request, reply) => reply.code(204).header('allow', ALLOW).send());
  });
};

/** The options of the GraphQL door. */
export interface GraphqlOptions extends Partial<WebSocketLimits> {
  readonly schema: GraphQLSchema;
  /** Path of the endpoint; default /graphql. */
  readonly path?: string;
  /**
   * Creates the context for resolvers, or a promise of it; default none. The abort signal in `details` is
   * created when it is read. For a WebSocket, the function is called once per operation, with the request
   * that opened the WebSocket.
   */
  readonly context?: ((request: FastifyRequest, details: ContextDetails) => unknown) | undefined;
  /** The context of all requests if `context` is not set; default undefined. */
  readonly contextValue?: unknown;
  /** What that context has besides for each caller; default nothing. */
  readonly callerContext?: ((caller: KnownCaller | undefined) => object) | undefined;
  /** Limits on documents and results; each has its own default. */
  readonly limits?: Partial<DocumentLimits & ResultLimits>;
  /** Maximum body size in bytes; default 100 KiB. A larger body is refused with 413. */
  readonly maxBodyBytes?: number;
  /** Maximum memory of cached documents and their plans, in bytes; default 32 MiB. */
  readonly maxCacheBytes?: number;
  /** Whether introspection is allowed; default true. GraphiQL needs it. */
  readonly introspection?: boolean;
  /** Whether errors suggest names that the client could have meant; default true. */
  readonly suggestions?: boolean;
  /** Whether clients may register documents by hash (Apollo's automatic persisted queries); default true. */
  readonly persistedQueries?: boolean;
  /**
   * Trusted documents: the path of a JSON file or a folder of `<id>.graphql` files, or an object that maps
   * ids to texts. They are validated at the start, exempt from the limits on documents, and never evicted.
   */
  readonly documents?: DocumentSource | undefined;
  /** Whether only `documents` may run; default false. */
  readonly onlyDocuments?: boolean;
  /** Maximum operations of a batch, a JSON array of requests; default 0, which refuses batches. */
  readonly maxBatch?: number;
  /** Where operations are counted and timed; default none. */
  readonly metrics?: Metrics | undefined;
  /** The accepted credentials and the operations that need them; default none. */
  readonly api?: ApiOptions | AccessPolicy | undefined;
  /** What callers may do with the relations in the schema; default what their scopes allow. */
  readonly rules?: RowRules | undefined;
  /** Which pages of other origins may use the door; default none. */
  readonly cors?: CorsOptions | undefined;
}

/** The options with their defaults. */
export function withDefaults(options: GraphqlOptions) {
  const defaults = defaultsOf('graphql');
  return {
    ...defaults,
    context: undefined,
    contextValue: undefined,
    callerContext: undefined,
    metrics: undefined,
    api: undefined,
    rules: undefined,
    cors: undefined,
    ...options,
    limits: { ...defaults, ...options.limits },
  };
}

/** Operations by POST; the body is JSON in UTF-8 of at most `bodyLimit` bytes. */
function postEndpoint(options: RunOptions, bodyLimit: number): Endpoint {
  const endpoint: Endpoint = {
    bodyLimit,
    authorize(ctx, bodyLength) {
      refuseCrossSite(ctx, options.cors);
      if (bodyLength > 0 || ctx.contentType !== null) refuseOtherTypes(ctx.contentType ?? '');
    },
    handle: (ctx) => runRequest(ctx, options),
  };
  return guarded(endpoint, options, (policy, ctx) => enter(options, policy, ctx));
}

/**
 * Queries by GET, and WebSockets. Browsers get a page at the same URL; a link with a query fills it in but
 * does not run it.
 */
function getEndpoint(options: RunOptions, page: Reply, sockets: ReturnType<typeof openWebSockets>): Endpoint {
  // The page reveals nothing about the service, and browsers request it without credentials.
  const showsPage = ({ headers: { accept } }: RequestContext) =>
    !acceptsEvents(accept) && prefersHtml(accept, Object.values(RESULT_TYPES));
  const endpoint: Endpoint = {
    bodyLimit: 0,
    handle(ctx) {
      const socket = sockets?.accept(ctx);
      if (socket !== undefined) return socket;
      ctx.addHeaders({ vary: 'accept' });
      // CONTRACT.md#graphql-operations: the path in a browser serves the query tool
      return showsPage(ctx) ? page : runRequest(ctx, options);
    },
  };
  return guarded(endpoint, options, (policy, ctx) => {
    if (showsPage(ctx)) return;
    const opensSocket = offeredUpgrade(ctx.request.raw) !== undefined;
    return opensSocket && options.rules === undefined
      ? policy.authenticate(ctx)
      : enter(options, policy, ctx);
  });
}

/** Lets a request in. Rules judge it by its operations, also without credentials. */
function enter({ rules }: RunOptions, policy: AccessPolicy, ctx: RequestContext) {
  return rules === undefined ? policy.authorizeAny(ctx) : policy.identify(ctx);
}

/** Refuses other types with 415: forms of other sites cannot send JSON (GraphQL over HTTP, "POST"). */
function refuseOtherTypes(contentType: string): void {
  const [type = '', ...parameters] = contentType.split(';');
  if (type.trim().toLowerCase() !== 'application/json') {
    throw new HttpProblem(415, 'UNSUPPORTED_MEDIA_TYPE', reasonPhrase(415));
  }
  const charset = /^\s*charset\s*=\s*"?([^\s"]+)/i;
  const given = parameters
    .map((parameter) => charset.exec(parameter)?.[1])
    .find((name) => name !== undefined);
  if (given !== undefined && !/^utf-?8$/i.test(given)) {
    throw new HttpProblem(415, 'UNSUPPORTED_CHARSET', 'The body must be UTF-8');
  }
}

/** The interactive query tool of the GraphQL door (CONTRACT.md#graphql-operations). */
interface Graphiql {
  /** The reply to a browser at the door's path; explains how to build the tool if it is not built. */
  readonly page: Reply;
  /** Serves the page's files at `{path}/assets/{name}`, by GET and HEAD. */
  readonly assets: FastifyPluginCallback;
}

/**
 * Prepares the tool for a door at `path`, such as `/graphql`. It reads one small file; other files are read
 * when a browser requests them. Never fails.
 */
export function openGraphiql(
  path: string,
  {
    directory = builtPage('graphiql'),
    examples,
  }: { readonly directory?: URL; readonly examples?: Examples | undefined } = {},
): Graphiql {
  const manifest = readManifest(directory);
  if (manifest === undefined) {
    return { page: notBuiltPage(), assets: (_app, _options, done) => done() };
  }
  return {
    page: graphiqlPage(path, manifest, examples),
    assets: graphiqlAssets(path, manifest, directory),
  };
}

/** Serves the built files below `{path}/assets/`. */
function graphiqlAssets(path: string, manifest: Manifest, directory: URL): FastifyPluginCallback {
  const replyTo = assetReplies(manifest, directory);
  const base = path.endsWith('/') ? path : `${path}/`;

  return (app, _options, done) => {
    // A reply budget can only be added before the application starts.
    ReplyBudget.of(app);
    app.route<{ Params: { name: string } }>({
      method: ['GET', 'HEAD'],
      url: `${base}assets/:name`,
      handler: async (request, reply) => {
        const found = await replyTo(request.params.name, request);
        return found === undefined ? reply.callNotFound() : send(reply, found);
      },
    });
    done();
  };
}

const PAGE = {
  title: 'Portico GraphQL',
  policy: [
    "script-src 'self'",
    "worker-src 'self'",
    // Monaco writes style elements and attributes at run time.
    "style-src 'self' 'unsafe-inline'",
    "font-src 'self'",
  ],
} as const;

/** The GraphiQL page of a door at `path`, which has its own examples unless some are given. */
function graphiqlPage(path: string, manifest: Manifest, examples: Examples | undefined): Reply {
  const data = examples === undefined ? '' : ` data-examples="${escapeHtml(JSON.stringify(examples))}"`;
  const content = `<div id="graphiql"${data}><p class="notice">Loading the query tool…</p></div>
<noscript><p class="notice">The query tool requires JavaScript. You can also send queries by POST to this URL.</p></noscript>
`;
  return htmlPage({ ...PAGE, head: pageTags(assetsBase(path), manifest), content });
}

/** The page shown if GraphiQL is not built. */
function notBuiltPage(): Reply {
  const content = `<h1>Portico GraphQL</h1>
<p>The query tool is not built. Run <code>npm run build:pages</code> in Portico's folder and start again.</p>
<p>You can query without it: send queries by POST to this URL as <code>application/json</code>.</p>
`;
  const head = '<style>body { margin: 3rem; font: 1rem/1.6 system-ui, sans-serif }</style>\n';
  return htmlPage({ ...PAGE, head, content });
}

/** The meters of the GraphQL door. */
export function operationMeters(metrics: Metrics): OperationMeters {
  const timer = metrics.timer('graphql.operations', {
    description:
      'Operations that ran, by name, type and outcome (success, error, or abandoned by their clients)',
    tags: ['name', 'type', 'outcome'],
  });
  const lookups = metrics.counter('graphql.documents', {
    description: 'Documents looked up: cached (hit), parsed (miss) or refused',
    tags: ['result'],
  });
  const byResult = {
    hit: lookups.with('result', 'hit'),
    miss: lookups.with('result', 'miss'),
    refused: lookups.with('result', 'refused'),
  };
  return {
    operation({ name, operation }) {
      const seriesOf = (outcome: OperationOutcome) =>
        timer.with('name', name?.value ?? 'anonymous', 'type', operation, 'outcome', outcome);
      const series: Partial<Record<OperationOutcome, ReturnType<typeof seriesOf>>> = {};
      return (began, outcome) => {
        const seconds = (performance.now() - began) / 1_000;
        series[outcome] ??= seriesOf(outcome);
        series[outcome].record(seconds);
      };
    },
    lookup: (result) => byResult[result].increment(),
  };
}
