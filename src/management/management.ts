import type { FastifyPluginAsync } from 'fastify';
import { exposedEndpoints } from './access/exposure.ts';
import { guard } from './access/guard.ts';
import { allEndpoints } from './all-endpoints.ts';
import { ApiDocuments } from './api/api-documents.ts';
import { auditedRoutes } from './audit/audited-routes.ts';
import { addConsole, servesConsole } from './console/console.ts';
import { withDefaults } from './defaults.ts';
import { addDiscovery } from './discovery/discovery.ts';
import { addProbes } from './health/probes.ts';
import { healthView } from './health/view.ts';
import { answerUnknownPaths } from './not-found.ts';
import { addRoutes, prepareScope } from './operations.ts';
import { basePrefix, checkCustomEndpoints, type ManagementOptions } from './options.ts';
import { registerWithAdmin } from './spring-boot-admin/spring-boot-admin.ts';

// The types and classes of the options, for programs that use only this door.
export type { CustomEndpoint, EndpointRequest, EndpointWrite } from '../config/schema/custom-endpoint.ts';
export { ExchangeLog } from '../http/exchange-log.ts';
export { listRoutes } from '../http/route-list.ts';
export { diskSpaceCheck } from '../observability/health/disk-space-check.ts';
export { eventLoopCheck } from '../observability/health/event-loop-check.ts';
export { Readiness } from '../observability/health/readiness.ts';
export { HealthRegistry } from '../observability/health/registry.ts';
export { History } from '../observability/history/history.ts';
export type { HistorySource } from '../observability/history/history-source.ts';
export { LogTail } from '../observability/log/log-tail.ts';
export { Loggers } from '../observability/log/loggers.ts';
export { Metrics } from '../observability/metrics/metrics.ts';
export { EventLoopWindows } from '../observability/runtime/event-loop-windows.ts';
export type { ConsoleView } from './console/console-view.ts';
export type { ManagementOptions } from './options.ts';
export type { SpringBootAdminOptions } from './spring-boot-admin/spring-boot-admin.ts';

/**
 * The management door (contract 4.3) as a Fastify plugin. Everything it adds stays in two scopes of its
 * own: the base path, guarded when users are configured, and the open probes beside it.
 * Fails with HealthCheckNameError, ManagementOptionsError, UserNameError, EmptySecretError or PasswordHashError
 * for invalid options.
 */
export const management: FastifyPluginAsync<ManagementOptions> = async (app, given) => {
  const options = withDefaults(given, app);
  const prefix = basePrefix(options.basePath);
  checkCustomEndpoints(options.endpoints, prefix);
  const health = healthView(options);
  const documents = new ApiDocuments(options, app.prefix + prefix);
  const endpoints = allEndpoints(options, health, documents);
  const guardHook = guard(options, app.log);
  if (options.springBootAdmin !== undefined) {
    registerWithAdmin(app, options.springBootAdmin, {
      path: app.prefix + prefix,
      name: options.build.artifact,
      metrics: options.metrics,
    });
  }

  app.register(async (scope) => {
    prepareScope(scope);
    addProbes(scope, health);
  });
  app.register(
    async (scope) => {
      prepareScope(scope);
      // A hook, so that it also sees requests for unknown paths.
      if (guardHook !== undefined) scope.addHook('onRequest', guardHook);
      answerUnknownPaths(scope, prefix);
      const exposed = exposedEndpoints(scope, endpoints, options);
      documents.exposed = exposed;
      // At `/` discovery would replace the application's own start page.
      const pages = servesConsole(options) ? [CONSOLE_LINK] : [];
      if (prefix !== '') addDiscovery(scope, exposed, options.build, pages);
      for (const { id, routes } of exposed) addRoutes(scope, auditedRoutes(routes, id, options.audit));
      if (pages.length > 0) addConsole(scope, endpoints, options);
    },
    { prefix },
  );
};

/** For the page that lists what is below the base path, not for programs. */
const CONSOLE_LINK = {
  path: '/console',
  about: 'The console: the service at a glance, and what a person can do with it.',
};
