import { Counter, Registry } from '@prometheus-io/client';
import express from 'express';
import { METERS, SERIES_OF_METER } from '../servers/series.ts';
import { address } from './listen.ts';

const registry = new Registry();
const counters = Array.from(
  { length: METERS },
  (_, i) =>
    new Counter({
      name: `bench_${i}_total`,
      help: 'Counts',
      labelNames: ['one', 'two'],
      registers: [registry],
    }),
);
const count = (series: number) => {
  for (const counter of counters) counter.inc({ one: `value-${series}`, two: 'fixed' });
};
for (let series = 0; series < SERIES_OF_METER; series++) count(series);
// Values change between two scrapes, as in a busy service.
setInterval(() => count(0), 100);

const app = express();
app.disable('etag').disable('x-powered-by');
app.get('/ping', (_request, response) => {
  response.json({ status: 'UP' });
});
app.get('/actuator/prometheus', async (_request, response) => {
  response.type(registry.contentType).send(await registry.metrics());
});
app.listen(address.port, address.host);
