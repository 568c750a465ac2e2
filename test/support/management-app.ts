import Fastify, { type FastifyInstance } from 'fastify';
import { management } from '../../src/management/management.ts';
import type { ManagementOptions } from '../../src/management/options.ts';
import { HealthRegistry, Readiness } from '../../src/telemetry/health.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';

/** A management door with everything exposed and unsecured, but for what `changes` says. */
export async function managementApp(
  changes: Partial<ManagementOptions> = {},
  app: FastifyInstance = Fastify(),
): Promise<FastifyInstance> {
  const options: ManagementOptions = {
    basePath: '/actuator',
    include: ['*'],
    exclude: [],
    showValues: 'always',
    users: [],
    role: undefined,
    build: { version: '1.2.3', artifact: 'portico', name: 'Portico' },
    health: new HealthRegistry([]),
    readiness: new Readiness(),
    metrics: new Metrics(),
    environment: { activeProfiles: [], propertySources: [] },
    endpoints: [],
    ...changes,
  };
  await app.register(management, options).ready();
  return app;
}
