import assert from 'node:assert/strict';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { test } from 'node:test';
import Fastify, { type FastifyInstance } from 'fastify';
import { parseExposition } from '../../../test/support/exposition.ts';
import { Metrics } from '../../observability/metrics/metrics.ts';
import { refuse } from '../management-errors.ts';
import { addRoutes } from '../operations.ts';
import { Exposition } from '../prometheus/exposition.ts';
import { TEXT } from '../prometheus/format.ts';
import { prometheusEndpoint } from './prometheus.ts';

async function start(metrics: Metrics): Promise<FastifyInstance> {
  const app = Fastify();
  app.setErrorHandler(refuse);
  addRoutes(app, prometheusEndpoint(metrics).routes(app));
  await app.ready();
  return app;
}

function someMetrics(): Metrics {
  const metrics = new Metrics();
  metrics.counter('process.cpu', { description: 'CPU time', unit: 'seconds' }).increment(2);
  metrics.gauge('jvm.memory.used', { description: 'x', unit: 'bytes', tags: { area: 'heap' } }, () => 7);
  return metrics;
}

const OPEN_METRICS_SCRAPE =
  'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1';

test('the format and its content type follow Accept', async () => {
  using metrics = someMetrics();
  await using app = await start(metrics);
  const plain = await app.inject('/prometheus');
  assert.equal(plain.statusCode, 200);
  assert.equal(plain.headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8');
  assert.equal(plain.headers['cache-control'], 'no-store');
  assert.equal(plain.headers['x-content-type-options'], 'nosniff');
  assert.deepEqual(
    parseExposition(plain.body, 'text').map(({ name, type }) => [name, type]),
    [
      ['jvm_memory_used_bytes', 'gauge'],
      ['process_cpu_seconds_total', 'counter'],
    ],
  );
  const open = await app.inject({ url: '/prometheus', headers: { accept: OPEN_METRICS_SCRAPE } });
  assert.equal(open.headers['content-type'], 'application/openmetrics-text; version=1.0.0; charset=utf-8');
  assert.deepEqual(
    parseExposition(open.body, 'openmetrics').map(({ name, type, unit }) => [name, type, unit]),
    [
      ['jvm_memory_used_bytes', 'gauge', 'bytes'],
      ['process_cpu_seconds', 'counter', 'seconds'],
    ],
  );
});

test('HEAD has the headers and no body; other methods are refused', async () => {
  using metrics = someMetrics();
  await using app = await start(metrics);
  const head = await app.inject({
    method: 'HEAD',
    url: '/prometheus',
    headers: { accept: OPEN_METRICS_SCRAPE },
  });
  assert.equal(head.statusCode, 200);
  assert.match(String(head.headers['content-type']), /^application\/openmetrics-text;/);
  assert.equal(head.body, '');
  assert.equal((await app.inject({ method: 'POST', url: '/prometheus' })).statusCode, 405);
});

test('includedNames picks families, given several times or with commas', async () => {
  using metrics = someMetrics();
  await using app = await start(metrics);
  const names = async (query: string) =>
    parseExposition((await app.inject(`/prometheus?${query}`)).body, 'text').map(({ name }) => name);
  const both = ['jvm_memory_used_bytes', 'process_cpu_seconds_total'];
  assert.deepEqual(await names('includedNames=jvm_memory_used_bytes'), both.slice(0, 1));
  assert.deepEqual(await names(`includedNames=${both.join(',')}`), both);
  assert.deepEqual(await names(`includedNames=${both.join('&includedNames=')}`), both);
  assert.deepEqual(await names('includedNames=nothing'), []);
  assert.deepEqual(await names(''), both);
});

/** Ten meters of a thousand series, as many as the cap allows, two thirds of them with several lines. */
function manySeries(): Metrics {
  const metrics = new Metrics();
  for (let meter = 0; meter < 10; meter++) {
    const description = 'One of many';
    const tags = ['uri', 'status'] as const;
    const counter = metrics.counter(`c${meter}`, { description, tags });
    const timer = metrics.timer(`t${meter}`, { description, tags, buckets: [0.01, 0.1, 1] });
    for (let i = 0; i < 1_000; i++) {
      const uri = `/resource/${i}/:id`;
      if (meter < 4) counter.with('uri', uri, 'status', '200').increment(i);
      else timer.with('uri', uri, 'status', '200').record(i / 777);
    }
  }
  return metrics;
}

test('a scrape of 10,000 series gives the event loop its turns', async (t) => {
  using metrics = manySeries();
  await using app = await start(metrics);
  const url = `${await app.listen({ host: '127.0.0.1', port: 0 })}/prometheus`;
  const { longest, body } = await longestBlock(async () => (await fetch(url)).text());
  assert.equal(parseExposition(body, 'text').flatMap(({ samples }) => samples).length, 4_000 + 6_000 * 7);
  t.diagnostic(`blocked for ${longest.toFixed(1)} ms at most`);

  // What bounds it is the work between two turns of the loop, on any machine.
  const chunks = [...new Exposition(metrics).chunks(TEXT)].map((chunk) => chunk.split('\n').length);
  assert.ok(Math.max(...chunks) < 550 && chunks.length > 80, `${chunks.length} chunks`);
});

/** Runs something and tells for how many milliseconds nothing else could run meanwhile, at most. */
async function longestBlock(run: () => Promise<string>): Promise<{ longest: number; body: string }> {
  const resolution = 5;
  const delay = monitorEventLoopDelay({ resolution });
  delay.enable();
  try {
    const body = await run();
    // The look that is due now would otherwise not be taken.
    await new Promise((resolve) => setTimeout(resolve, 2 * resolution));
    return { longest: delay.max / 1e6 - resolution, body };
  } finally {
    delay.disable();
  }
}
