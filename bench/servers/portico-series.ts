// Portico's management door with ten thousand series from the start; a service would collect as many only
// over time.

import { createListener } from '@portico/transport';
import pino from 'pino';
import { management } from '../../src/management/management.ts';
import { managementErrors } from '../../src/management/management-errors.ts';
import { HealthRegistry, Readiness } from '../../src/telemetry/health.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { METERS, SERIES_OF_METER } from './series.ts';

const metrics = new Metrics();
const counters = Array.from({ length: METERS }, (_, i) =>
  metrics.counter(`bench.${i}`, { description: 'Counts', tags: ['one', 'two'] }),
);
const count = (series: number) => {
  for (const counter of counters) counter.with('one', `value-${series}`, 'two', 'fixed').increment();
};
for (let series = 0; series < SERIES_OF_METER; series++) count(series);
setInterval(() => count(0), 100);

const { app, listen } = createListener({
  door: 'management',
  host: '127.0.0.1',
  port: Number(process.env.PORT),
  portHint: 'PORT',
  log: pino(),
  errors: managementErrors,
});
app.register(management, {
  basePath: '/actuator',
  include: ['*'],
  exclude: [],
  showValues: 'never',
  users: [],
  role: undefined,
  build: { version: '0', artifact: 'portico', name: 'Portico' },
  health: new HealthRegistry([]),
  readiness: new Readiness(),
  metrics,
  environment: { activeProfiles: [], propertySources: [] },
  endpoints: [],
});
await listen();
