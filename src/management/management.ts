import type { FastifyInstance, FastifyPluginAsync } from 'fastify';
import { customEndpoint } from './custom-endpoint.ts';
import { addDiscovery } from './discovery.ts';
import type { Endpoint } from './endpoint.ts';
import { envEndpoint } from './env.ts';
import { refuse } from './error-format.ts';
import { exposure } from './exposure.ts';
import { guard } from './guard.ts';
import { healthEndpoint } from './health.ts';
import { infoEndpoint } from './info.ts';
import { metricsEndpoint } from './metrics.ts';
import { answerUnknownPaths } from './not-found.ts';
import { basePrefix, checkCustomEndpoints, type ManagementOptions } from './options.ts';
import { addProbes } from './probes.ts';

// What the options are made of, for those who take only this door.
export { codeCheck } from '../observability/code-check.ts';
export { HealthRegistry } from '../observability/health-registry.ts';
export { Metrics } from '../observability/metrics.ts';
export { Readiness } from '../observability/readiness.ts';
export type { ManagementOptions } from './options.ts';

/**
 * The management door (contract 4.3) as a Fastify plugin. Everything it adds stays in two scopes of its
 * own: the base path, guarded when users are configured, and the open probes beside it.
 * Fails with ManagementOptionsError, UserNameError or EmptySecretError when the options make no door.
 */
export const management: FastifyPluginAsync<ManagementOptions> = async (app, options) => {
  const prefix = basePrefix(options.basePath);
  checkCustomEndpoints(options.endpoints, prefix);
  const endpoints = exposedEndpoints(options);
  const guardHook = guard(options.users, options.role);

  app.register(async (scope) => {
    scope.setErrorHandler(refuse);
    addProbes(scope, options.readiness);
  });
  app.register(
    async (scope) => {
      scope.setErrorHandler(refuse);
      // Before any route: the guard is the first thing that a request under the base path meets.
      if (guardHook !== undefined) scope.addHook('onRequest', guardHook);
      answerUnknownPaths(scope, prefix);
      addEndpoints(scope, endpoints, prefix);
    },
    { prefix },
  );
};

function exposedEndpoints(options: ManagementOptions): readonly Endpoint[] {
  const exposed = exposure(options.include, options.exclude);
  return [
    healthEndpoint(options.health),
    infoEndpoint(options.build),
    metricsEndpoint(options.metrics),
    envEndpoint(options.environment, options.showValues),
    ...options.endpoints.map((endpoint) => customEndpoint(endpoint)),
  ].filter(({ id }) => exposed(id));
}

function addEndpoints(scope: FastifyInstance, endpoints: readonly Endpoint[], prefix: string): void {
  // At `/` the page of links would take the place of somebody's start page.
  if (prefix !== '') addDiscovery(scope, endpoints);
  for (const endpoint of endpoints) endpoint.addRoutes(scope);
}
