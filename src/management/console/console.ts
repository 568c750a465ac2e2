import { hostname } from 'node:os';
import { HttpProblem, type Reply, type RequestContext, send } from '@portico/transport';
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import { type Access, accessLevels } from '../../config/options/access.ts';
import { isLoopback, OwnHosts } from '../../core/addresses.ts';
import { prefersHtml } from '../../core/negotiation.ts';
import { type MaybePromise, whenReady } from '../../core/scheduler.ts';
import { requestFields } from '../../core/trace.ts';
import {
  assetReplies,
  assetsBase,
  builtPage,
  htmlPage,
  linksPage,
  type Manifest,
  pageTags,
  readManifest,
} from '../../http/pages.ts';
import { readListParameters, readUserPage } from '../../relations/lists.ts';
import { accepted, type NewUser, readNewUser, readUserId, userProblem } from '../../relations/user.ts';
import type { DatabaseUserStore } from '../../relations/user-stores.ts';
import { auditedRoutes } from '../audit.ts';
import { envEndpoint } from '../endpoints/properties.ts';
import { type ExposureRules, exposure, isExposed, principalOf, withoutWrites } from '../guard.ts';
import { FORBIDDEN, jsonReply, jsonTextReply, NO_CONTENT, NOT_FOUND, refuse } from '../management-errors.ts';
import { accessRules, valueShower } from '../masking.ts';
import {
  addOperations,
  addRoutes,
  type ManagementEndpoint,
  type Operations,
  type Routes,
} from '../operations.ts';
import type { DoorOptions } from '../options.ts';
import type { ConsoleView, TestSender } from './console-view.ts';
import { liveOperations } from './live.ts';
import { addRelationRows, relationRoutes } from './relation-pages.ts';
import { ruleRoutes } from './relation-rules.ts';

type ConsoleProcess = Awaited<ReturnType<NonNullable<ConsoleView['processes']>>>[number];

export function servesConsole(options: DoorOptions): boolean {
  return isExposed('console', options);
}

/**
 * Adds the console below the base path: the page at /console, its files, and its data endpoints below
 * /console/api. JSON lists of links omit it, because it is a page for people.
 */
export function addConsole(
  base: FastifyInstance,
  endpoints: readonly ManagementEndpoint[],
  options: DoorOptions,
): void {
  const { console: view = {}, users, audit, deliveries, history, logTail } = options;
  const readOnly = consoleAccess(options) !== 'unrestricted';
  const shown = consoleEndpoints(
    endpoints.map((each) => (each.id === 'env' ? ownEnv(options) : each)),
    options,
  );
  const shows = (id: string) => shown.some((endpoint) => endpoint.id === id);
  const directory = builtPage('console');
  const manifest = readManifest(directory);
  const page = consolePage(manifest);

  base.register(async (scope) => {
    const { hosts, role, localOnly } = view;
    scope.addHook(
      'onRequest',
      consoleGuard({ secured: users.length > 0, localOnly, hosts, role, refusal: refusalPage }),
    );
    addOperations(scope, '/console', { get: () => page, fast: false });
    if (manifest !== undefined) addOperations(scope, '/console/assets/:name', assets(manifest, directory));
    scope.register(
      async (api) => {
        const add = (id: string, routes: Routes) => {
          const why = closedBy(id, view);
          if (why !== undefined) addRoutes(api, closedRoutes(routes, why));
          else addRoutes(api, auditedRoutes(routes, id, audit));
        };
        for (const { id, routes } of shown) add(id, routes(api));
        addRoutes(api, {
          '/about': aboutOperations({ ...options, readOnly, endpoints: shown.map(({ id }) => id) }),
        });
        if (view.sender !== undefined) add('test-deliveries', testDeliveries(view.sender, readOnly));
        if (view.users !== undefined) add('users', userRoutes(view.users, readOnly));
        if (view.relations !== undefined) {
          add('relations', relationRoutes(view.relations, readOnly));
          addRelationRows(api, view.relations, {
            isReadOnly: readOnly,
            closed: closedBy('relations', view),
            audit,
          });
        }
        if (view.ruled !== undefined) add('rules', ruleRoutes(view.ruled));
        addRoutes(api, {
          '/live': liveOperations({
            history: shows('history') ? history : undefined,
            deliveries:
              shows('deliveries') && closedBy('deliveries', view) === undefined ? deliveries?.log : undefined,
            logTail: shows('logtail') ? logTail : undefined,
          }),
        });
      },
      { prefix: '/console/api' },
    );
  });
}

/** Shows the service's own settings also where the values of `env` are masked: the console has its own guard. */
function ownEnv({ environment, showValues, secrets }: DoorOptions): ManagementEndpoint {
  return envEndpoint(environment, valueShower(showValues === 'never' ? 'settings' : showValues, secrets));
}

function assets(manifest: Manifest, directory: URL): Operations {
  const replyTo = assetReplies(manifest, directory);
  return {
    fast: false,
    async get({ param, method, headers }) {
      const found = await replyTo(param, { method, headers });
      if (found === undefined) throw NOT_FOUND;
      return found;
    },
  };
}

interface AboutOptions
  extends Pick<DoorOptions, 'build' | 'users' | 'console' | 'include' | 'exclude' | 'access' | 'showValues'> {
  readonly readOnly: boolean;
  /** The ids of the endpoints that the console shows. */
  readonly endpoints: readonly string[];
}

/** The facts about the service and its process, and the actions that the user may take. */
function aboutOperations(options: AboutOptions): Operations {
  const { build, users, console: view = {}, readOnly, endpoints, showValues } = options;
  const { doors = () => [], processes, database, role } = view;
  const reference = isExposed('docs', options);
  const all = [
    ...endpoints,
    ...(view.sender === undefined ? [] : ['test-deliveries']),
    ...(view.users === undefined ? [] : ['users']),
    ...(view.relations === undefined ? [] : ['relations']),
    ...(view.ruled === undefined ? [] : ['rules']),
  ];
  const startedAt = new Date(performance.timeOrigin).toISOString();

  function about(ctx: RequestContext, others: readonly ConsoleProcess[]) {
    const { request } = ctx;
    const user = principalOf(request)?.name;
    return {
      name: build.name,
      version: build.version,
      process: { host: hostname(), pid: process.pid, node: process.version, startedAt },
      processes: others.map(({ name, since }) => ({ name, since: new Date(since).toISOString() })),
      doors: doors(),
      database: database ?? null,
      secured: users.length > 0,
      user: user ?? null,
      actions: !readOnly && mayAct(request, role),
      reference,
      showValues,
      endpoints: all.filter((id) => closedBy(id, view) === undefined),
      closed: Object.fromEntries(all.map((id) => [id, closedBy(id, view)])),
    };
  }

  return {
    fast: false,
    get: (ctx) => {
      const others: MaybePromise<readonly ConsoleProcess[]> = processes?.() ?? [];
      return whenReady(others, (known) => jsonReply(ctx, about(ctx, known)));
    },
  };
}

/** The page of the console, or how to build it. */
function consolePage(manifest: Manifest | undefined): Reply {
  if (manifest === undefined) {
    return refusalPage('The console is not built. Run "npm run build:pages" and start again.', 200);
  }
  return htmlPage({
    title: 'Portico console',
    policy: ["script-src 'self'", "style-src 'self'"],
    head: pageTags(assetsBase('/console'), manifest),
    content:
      '<div id="console"><p class="boot">Opening the console…</p></div>\n<noscript><p>The console needs JavaScript.</p></noscript>\n',
  });
}

/** The page that a browser gets instead of the console. */
function refusalPage(why: string, status = 403): Reply {
  const page = linksPage('Portico console', `${why}.`, []);
  return { ...page, status, headers: { ...page.headers, 'cache-control': 'no-store' } };
}

/** Lists the sources of test deliveries; a POST sends one. */
function testDeliveries(sender: TestSender, readOnly: boolean): Routes {
  return {
    '/test-deliveries': {
      get: (ctx) => jsonReply(ctx, { sources: sender.sources() }),
      post: readOnly
        ? undefined
        : async (ctx, body) => {
            const { source, event, content } = readTest(body);
            return jsonReply(ctx, await sender.send(source, event, content));
          },
    },
  };
}

/** What a header cannot have. */
const CONTROL = /[^\t\x20-\x7e]/;

function readTest(body: unknown) {
  const { source, event, data = {}, ...raw } = Object(body) as Readonly<Record<string, unknown>>;
  if (typeof source === 'string' && typeof event === 'string') {
    const { body: text, contentType = '' } = raw;
    if (text === undefined) return { source, event, content: { data } };
    if (typeof text === 'string' && typeof contentType === 'string' && !CONTROL.test(contentType)) {
      return { source, event, content: { body: text, contentType } };
    }
  }
  throw new HttpProblem(
    400,
    'TEST_DELIVERY',
    'The body must be like {"source":"","event":"new_commit","data":{}}; "body" and "contentType" replace "data"',
  );
}

const SHOWN: readonly string[] = [
  'health',
  'info',
  'metrics',
  'env',
  'loggers',
  'httpexchanges',
  'deliveries',
  'webhookendpoints',
  'eventloop',
  'threaddump',
  'history',
  'logtail',
  'requests',
  'openapi',
  'docs',
];

function consoleAccess({ access = {} }: Pick<ExposureRules, 'access'>): Access {
  return accessRules(access)('console', undefined);
}

/**
 * The endpoints from which the console takes its data. They need not be exposed, because the console has its
 * own guard; but exclusions and configured access levels apply here too.
 */
function consoleEndpoints(
  endpoints: readonly ManagementEndpoint[],
  { exclude, access = {} }: ExposureRules,
): readonly ManagementEndpoint[] {
  const excluded = exposure(exclude, []);
  const own = consoleAccess({ access });
  const named = accessRules(access);
  return endpoints.flatMap((endpoint) => {
    if (!SHOWN.includes(endpoint.id) || excluded(endpoint.id)) return [];
    const level = lower(own, named(endpoint.id, undefined));
    if (level === 'none') return [];
    if (level === 'unrestricted') return [endpoint];
    return [{ ...endpoint, routes: (scope) => withoutWrites(endpoint.routes(scope)) }];
  });
}

/** Data of other doors, which the console hides if those doors ask for credentials and this one does not. */
const OTHERS: readonly string[] = [
  'users',
  'relations',
  'rules',
  'deliveries',
  'webhookendpoints',
  'test-deliveries',
];

/** Why the console may not show this endpoint's data; undefined if it may. */
function closedBy(id: string, { closed, relations }: Pick<ConsoleView, 'closed' | 'relations'>) {
  if (id === 'relations' && relations?.closed !== undefined) return relations.closed;
  return OTHERS.includes(id) ? closed : undefined;
}

/** Routes that answer only why they are closed. */
function closedRoutes(routes: Routes, why: string): Routes {
  const refuse = () => {
    throw new HttpProblem(403, 'CONSOLE_REFUSED', why);
  };
  const closed = ({ get, post, delete: remove }: Operations): Operations => ({
    get: get && refuse,
    post: post && refuse,
    delete: remove && refuse,
  });
  return Object.fromEntries(Object.entries(routes).map(([path, operations]) => [path, closed(operations)]));
}

function lower(a: Access, b: Access): Access {
  return accessLevels.indexOf(a) < accessLevels.indexOf(b) ? a : b;
}

/** Sent with every action. No form can send it, and no page of another origin may. */
const ACTION_HEADER = 'x-portico-console';

interface ConsoleGuardOptions extends Pick<ConsoleView, 'hosts' | 'role' | 'localOnly'> {
  /** Whether the management door asks for credentials. */
  readonly secured: boolean;
  /** The reply to a browser that may not see the console. */
  readonly refusal: (why: string) => Reply;
}

const problem = (message: string) => new HttpProblem(403, 'CONSOLE_REFUSED', message);

const REMOTE = problem(
  'The console is open only to this machine, or with credentials: set MANAGEMENT_USER and MANAGEMENT_PASSWORD',
);
const HOST = problem('The Host header does not name this door; HTTP_HOSTS adds names');
const ORIGIN = problem('An action must come from the console itself');
const HEADER = problem(`An action needs the header ${ACTION_HEADER}`);

/** The hook of everything below the console. The base path's hook runs before it and checks credentials. */
function consoleGuard({
  secured,
  localOnly,
  hosts = [],
  role,
  refusal,
}: ConsoleGuardOptions): onRequestHookHandler {
  const ownHosts = new OwnHosts(hosts, 'all');

  function refusalOf(request: FastifyRequest): HttpProblem | undefined {
    if (!secured && !isLocalClient(request, localOnly)) return REMOTE;
    if (ownHosts.strangerOf(request) !== undefined) return HOST;
    if (request.method === 'GET' || request.method === 'HEAD' || request.method === 'OPTIONS') return;
    if (!isSameOrigin(request)) return ORIGIN;
    if (request.headers[ACTION_HEADER] === undefined) return HEADER;
    return mayAct(request, role) ? undefined : FORBIDDEN;
  }

  return (request, reply: FastifyReply, done) => {
    const found = refusalOf(request);
    if (found === undefined) return done();
    if (request.method === 'GET' && prefersHtml(request.headers.accept, ['application/json'])) {
      send(reply, refusal(found.message));
    } else refuse(found, request, reply);
  };
}

function mayAct(request: FastifyRequest, role: string | undefined): boolean {
  return role === undefined || principalOf(request)?.roles.includes(role) === true;
}

/** Browsers send the Origin of every write. Other programs do not, and have to send the header. */
function isSameOrigin({ headers, protocol, host }: FastifyRequest): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin') return false;
  return (
    headers.origin === undefined || headers.origin.toLowerCase() === `${protocol}://${host}`.toLowerCase()
  );
}

/**
 * Names of fields that proxies, tunnels and delivery networks add to a request. The fields for the client's
 * address differ from product to product, so a name matches by the words in it.
 */
const PROXY_FIELD = new RegExp(
  [
    // Forwarded, X-Forwarded-For, X-Original-Forwarded-For, and misspellings.
    'forward',
    '^via$|^(?:x-)?proxy|^cdn-|^surrogate-|^front-end-|^x-varnish',
    // CF-Connecting-IP, True-Client-IP, X-Real-IP, X-Cluster-Client-IP, X-Remote-Addr, X-Azure-SocketIP.
    '(?:client|connecting|real|remote|user|socket|source|originating|peer|external)-?(?:ip|addr(?:ess)?)$',
    // Fields in which a proxy keeps what it has rewritten.
    '^x-(?:original|rewrite|url|script|scheme|ssl|host|server|client-(?:cert|verify))',
    // Fields of single products: Cloudflare, CloudFront and load balancers of AWS, Envoy, Azure, Google,
    // Akamai, Fastly and others.
    '^(?:x-)?(?:cf|amzn?|envoy|azure|fd|arr|appengine|cloud|goog|gfe|akamai|edge|fastly|fly|vercel|incap|sucuri|heroku|request-start|queue-start|ngrok|tailscale)(?:-|$)',
  ].join('|'),
);

/** Fields that a trusted proxy may add; X-Forwarded-For then identifies the client. */
const EXPLAINED = /^(?:x-forwarded(?:-.*)?|x-real-ip|via)$/;

/**
 * Whether the client runs on this machine. Any sign of a proxy means that it may not, unless the proxy is
 * trusted and all addresses that it names are of this machine. With `localOnly`, only local clients can
 * connect, so a client without an address is local.
 */
export function isLocalClient(
  { ip, ips, headers }: Pick<FastifyRequest, 'ip' | 'ips' | 'headers'>,
  localOnly = false,
): boolean {
  // A closed connection has no address either.
  const isLocal = (address: string | undefined) => (address ? isLoopback(address) : localOnly);
  if (!(ips ?? [ip]).every(isLocal)) return false;
  const signs = Object.keys(headers).filter((name) => PROXY_FIELD.test(name));
  if (signs.length === 0) return true;
  // Fastify follows X-Forwarded-For only from trusted proxies.
  if (ips === undefined || ips.length < 2 || !signs.every((name) => EXPLAINED.test(name))) return false;
  const named = ['x-forwarded-for', 'x-real-ip'].flatMap((name) => String(headers[name] ?? []).split(','));
  return named.every((address) => address.trim() === '' || isLoopback(address.trim()));
}

const LIMIT = 50;

/** The console's routes for the users that REST serves: list, create, update and delete. */
function userRoutes(users: DatabaseUserStore, readOnly: boolean): Routes {
  const whenMayWrite = <T>(operation: T): T | undefined => (readOnly ? undefined : operation);
  return {
    '/users': {
      get: async (ctx) => {
        const { json, next, prev } = await readPageOfUsers(users, ctx.query);
        const cursors = JSON.stringify({ next: next ?? null, prev: prev ?? null }).slice(1);
        const body = Buffer.concat([Buffer.from('{"items":['), json, Buffer.from(`],${cursors}`)]);
        return jsonTextReply(ctx, body);
      },
      post: whenMayWrite(async (ctx, body) => {
        const id = await accepted(users.create(readUser(body)));
        ctx.log.info({ ...requestFields(ctx), user: id }, 'user created on request');
        return jsonReply(ctx, { id });
      }),
    },
    '/users/{id}': {
      get: async (ctx) => {
        const json = await users.readJson(readId(ctx.param));
        if (json === undefined) throw NO_USER;
        return jsonTextReply(ctx, json);
      },
      // This door has no PATCH.
      post: whenMayWrite(async (ctx, body) => {
        const id = readId(ctx.param);
        if (!(await accepted(users.update(id, readUser(body))))) throw NO_USER;
        ctx.log.info({ ...requestFields(ctx), user: id }, 'user changed on request');
        return NO_CONTENT;
      }),
      delete: whenMayWrite(async (ctx) => {
        const id = readId(ctx.param);
        if (!(await accepted(users.remove(id)))) throw NO_USER;
        ctx.log.info({ ...requestFields(ctx), user: id }, 'user removed on request');
        return NO_CONTENT;
      }),
    },
  };
}

const NO_USER = new HttpProblem(404, 'USER_NOT_FOUND', 'There is no such user');

function readId(param: string): number {
  const id = readUserId(param);
  if (id === undefined) throw NO_USER;
  return id;
}

function readUser(body: unknown): NewUser {
  const user = readNewUser(body);
  if (user === undefined) throw new HttpProblem(400, 'INVALID_USER', userProblem(body));
  return user;
}

/** A page in REST's order; newest first unless it is sorted or filtered. */
function readPageOfUsers(users: DatabaseUserStore, query: RequestContext['query']) {
  const { limit = String(LIMIT), ...others } = query;
  const newestFirst = Object.keys(others).every((name) => name === 'cursor') ? { sort: '-id' } : {};
  const asked = readListParameters({ limit, ...newestFirst, ...others }, false);
  if (asked === undefined) throw new Error('a limit is always given');
  return readUserPage(users.lists, asked);
}
