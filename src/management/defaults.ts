import type { FastifyInstance } from 'fastify';
import { builtInEndpoints } from '../config/options/endpoint-id.ts';
import { environmentProperties } from '../config/sources.ts';
import { KnownSecrets } from '../core/redaction.ts';
import { HealthRegistry, Readiness } from '../telemetry/health.ts';
import { Metrics } from '../telemetry/metrics.ts';
import { observeRuntime } from '../telemetry/runtime.ts';
import { nearestBuild } from './endpoints/info.ts';
import type { Environment } from './environment.ts';
import type { DoorOptions, ManagementOptions } from './options.ts';

/**
 * The options with their defaults: the four standard endpoints and those of `endpoints` at /actuator, not secured, no
 * values shown, the passwords of users redacted; the build of the nearest package.json, no health checks, meters of the process, the environment; ready
 * while the application listens. What is opened here closes with `app`.
 */
export function withDefaults(options: ManagementOptions, app: FastifyInstance): DoorOptions {
  const { endpoints = [], users = [] } = options;
  return {
    ...options,
    basePath: options.basePath ?? '/actuator',
    include: options.include ?? [...builtInEndpoints, ...endpoints.map(({ id }) => id)],
    exclude: options.exclude ?? [],
    showValues: options.showValues ?? 'never',
    secrets: options.secrets ?? new KnownSecrets(users.map(({ password }) => password)),
    users,
    role: options.role,
    build: options.build ?? nearestBuild(),
    health: options.health ?? new HealthRegistry([]),
    readiness: options.readiness ?? readinessOf(app),
    metrics: options.metrics ?? processMetrics(app),
    environment: options.environment ?? processEnvironment(process.env),
    endpoints,
  };
}

function readinessOf(app: FastifyInstance): Readiness {
  const readiness = new Readiness();
  app.addHook('onListen', async () => readiness.accept());
  app.addHook('preClose', async () => readiness.refuse());
  return readiness;
}

function processMetrics(app: FastifyInstance): Metrics {
  const metrics = new Metrics({ log: app.log });
  const runtime = observeRuntime(metrics);
  app.addHook('onClose', async () => {
    runtime[Symbol.dispose]();
    metrics[Symbol.dispose]();
  });
  return metrics;
}

function processEnvironment(env: NodeJS.ProcessEnv): Environment {
  return {
    activeProfiles: env.NODE_ENV ? [env.NODE_ENV] : [],
    propertySources: [{ name: 'systemEnvironment', properties: environmentProperties(env) }],
  };
}
