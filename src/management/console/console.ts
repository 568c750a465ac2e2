import type { FastifyInstance } from 'fastify';
import { assetReplies } from '../../http/built-page/asset-reply.ts';
import { builtPage, type Manifest, readManifest } from '../../http/built-page/manifest.ts';
import { EventStreams } from '../../http/event-stream/event-streams.ts';
import { replyBudgetOf } from '../../http/reply/reply-pieces.ts';
import { isExposed } from '../access/exposure.ts';
import { auditedRoutes } from '../audit/audited-routes.ts';
import type { ManagementEndpoint } from '../management-endpoint.ts';
import { NOT_FOUND } from '../management-errors.ts';
import { addOperations, addRoutes, type Operations, type Routes } from '../operations.ts';
import type { DoorOptions } from '../options.ts';
import { aboutOperations } from './about.ts';
import { closedRoutes, consoleAccess, consoleEndpoints, isClosed } from './console-access.ts';
import { consoleGuard } from './console-guard.ts';
import { consolePage, refusalPage } from './console-page.ts';
import { addLiveRoute } from './live-route.ts';
import { testDeliveries } from './test-deliveries.ts';
import { userRoutes } from './users.ts';

/** Whether the console is served. */
export function servesConsole(options: DoorOptions): boolean {
  return isExposed('console', options);
}

/**
 * Adds the console below the base path: the page at /console, its files, and below /console/api the endpoints that it has
 * its data from. It stands in no list of links for programs, because it is a page for people.
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
  const streams = new EventStreams(replyBudgetOf(base));
  base.addHook('preClose', (done) => {
    streams.end();
    done();
  });

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
        addLiveRoute(api, streams, {
          history: shows('history') ? history : undefined,
          deliveries: shows('deliveries') && !isClosed('deliveries', view) ? deliveries?.log : undefined,
          logTail: shows('logtail') ? logTail : undefined,
        });
      },
      { prefix: '/console/api' },
    );
  });
}

/** The files of the page by their names. */
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
