import { hostname } from 'node:os';
import { HttpProblem, type Reply, type RequestContext } from '@portico/transport';
import type { FastifyInstance } from 'fastify';
import { type MaybePromise, whenReady } from '../../core/maybe-promise.ts';
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
import { auditedRoutes } from '../audit.ts';
import { isExposed, principalOf } from '../guard.ts';
import type { ManagementEndpoint } from '../management-endpoint.ts';
import { jsonReply, NOT_FOUND } from '../management-errors.ts';
import { addOperations, addRoutes, type Operations, type Routes } from '../operations.ts';
import type { DoorOptions } from '../options.ts';
import {
  closedRoutes,
  consoleAccess,
  consoleEndpoints,
  consoleGuard,
  isClosed,
  mayAct,
} from './console-access.ts';
import type { ConsoleProcess, TestSender } from './console-view.ts';
import { liveOperations } from './live.ts';
import { userRoutes } from './users.ts';

/** Whether the console is served. */
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
  const shown = consoleEndpoints(endpoints, options);
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
          if (view.closed !== undefined && isClosed(id, view))
            addRoutes(api, closedRoutes(routes, view.closed));
          else addRoutes(api, auditedRoutes(routes, id, audit));
        };
        for (const { id, routes } of shown) add(id, routes(api));
        addRoutes(api, {
          '/about': aboutOperations({ ...options, readOnly, endpoints: shown.map(({ id }) => id) }),
        });
        if (view.sender !== undefined) add('test-deliveries', testDeliveries(view.sender, readOnly));
        if (view.users !== undefined) add('users', userRoutes(view.users, readOnly));
        addRoutes(api, {
          '/live': liveOperations({
            history: shows('history') ? history : undefined,
            deliveries: shows('deliveries') && !isClosed('deliveries', view) ? deliveries?.log : undefined,
            logTail: shows('logtail') ? logTail : undefined,
          }),
        });
      },
      { prefix: '/console/api' },
    );
  });
}

/** The files of the page by name. */
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
  extends Pick<DoorOptions, 'build' | 'users' | 'console' | 'include' | 'exclude' | 'access'> {
  readonly readOnly: boolean;
  /** The ids of the endpoints that the console shows. */
  readonly endpoints: readonly string[];
}

/** The facts about the service and its process, and the actions that the user may take. */
function aboutOperations(options: AboutOptions): Operations {
  const { build, users, console: view = {}, readOnly, endpoints } = options;
  const { doors = () => [], processes, database, role } = view;
  const reference = isExposed('docs', options);
  const all = [
    ...endpoints,
    ...(view.sender === undefined ? [] : ['test-deliveries']),
    ...(view.users === undefined ? [] : ['users']),
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
      endpoints: all.filter((id) => !isClosed(id, view)),
      closed: Object.fromEntries(all.filter((id) => isClosed(id, view)).map((id) => [id, view.closed])),
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
    colour: '#3451d1',
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
            const { source, event, data } = readTest(body);
            return jsonReply(ctx, await sender.send(source, event, data));
          },
    },
  };
}

function readTest(body: unknown) {
  const { source, event, data = {} } = Object(body) as Readonly<Record<string, unknown>>;
  if (typeof source === 'string' && typeof event === 'string') return { source, event, data };
  throw new HttpProblem(
    400,
    'TEST_DELIVERY',
    'The body must be like {"source":"","event":"new_commit","data":{}}',
  );
}
