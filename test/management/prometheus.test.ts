import assert from 'node:assert/strict';
import { test } from 'node:test';
import Fastify from 'fastify';
import { Exposition, OPEN_METRICS, TEXT } from '../../src/management/endpoints/prometheus.ts';
import { management } from '../../src/management/management.ts';
import { HealthRegistry, Readiness } from '../../src/telemetry/health.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { addJvmMetrics, observeRuntime } from '../../src/telemetry/runtime.ts';
import { parseExposition } from '../support/exposition.ts';
import { prometheusMissing, promtoolFindings, startPrometheus } from '../support/prometheus.ts';
import { startTestService } from '../support/service.ts';

const skip = prometheusMissing();
const EXPOSED = { env: { MANAGEMENT_INCLUDE: 'health,prometheus' } };

/** A service that listens, exposes the endpoint, and has done some of everything. */
async function busyService() {
  const service = await startTestService(EXPOSED);
  await service.listen();
  const { rest = '', graphql = '', webhook = '', management: door = '' } = service.urls;
  const json = { method: 'POST', headers: { 'content-type': 'application/json' } };
  await fetch(`${rest}/users`, { ...json, body: '{"name":"ann","email":"a@b"}' });
  for (let i = 0; i < 3; i++) await (await fetch(`${rest}/users`)).text();
  await fetch(`${rest}/nothing/of/the/kind`);
  await fetch(`${graphql}/graphql`, { ...json, body: '{"query":"query Greet { hello }"}' });
  await fetch(`${webhook}/webhook`, { ...json, body: '{"event":"new_commit","data":{}}' });
  return Object.assign(service, { scrapeUrl: `${door}/actuator/prometheus` });
}

test('it is there only when it is asked for', async () => {
  await using service = await startTestService();
  await service.listen();
  const { management: door = '' } = service.urls;
  assert.equal((await fetch(`${door}/actuator/prometheus`)).status, 404);
});

test('the names that dashboards for Node and for Micrometer look for are there, in both formats', async () => {
  await using service = await busyService();
  const scrape = async (accept: string) => (await fetch(service.scrapeUrl, { headers: { accept } })).text();
  const families = parseExposition(await scrape('text/plain'), 'text');
  const names = new Set(families.flatMap(({ samples }) => samples.map(({ name }) => name)));
  const expected = [
    'process_cpu_seconds_total',
    'process_cpu_user_seconds_total',
    'process_cpu_system_seconds_total',
    'process_start_time_seconds',
    'process_resident_memory_bytes',
    'process_uptime_seconds',
    'nodejs_eventloop_lag_seconds',
    'nodejs_eventloop_lag_min_seconds',
    'nodejs_eventloop_lag_max_seconds',
    'nodejs_eventloop_lag_mean_seconds',
    'nodejs_eventloop_lag_p50_seconds',
    'nodejs_eventloop_lag_p90_seconds',
    'nodejs_eventloop_lag_p99_seconds',
    'nodejs_eventloop_utilization',
    'nodejs_heap_size_total_bytes',
    'nodejs_heap_size_used_bytes',
    'nodejs_external_memory_bytes',
    'nodejs_heap_space_size_total_bytes',
    'nodejs_heap_space_size_used_bytes',
    'nodejs_heap_space_size_available_bytes',
    'nodejs_gc_duration_seconds_bucket',
    'nodejs_gc_duration_seconds_sum',
    'nodejs_gc_duration_seconds_count',
    'nodejs_version_info',
    'http_server_requests_seconds_count',
    'http_server_requests_seconds_sum',
    'http_server_requests_seconds_max',
    'http_server_requests_seconds_bucket',
    'database_reads_total',
    'database_commits_seconds_count',
    'database_writes_total',
    'graphql_operations_seconds_count',
    'webhook_acknowledgements_seconds_count',
    'webhook_backlog',
  ];
  assert.deepEqual(
    expected.filter((name) => !names.has(name)),
    [],
  );
  for (const { name, samples } of families) {
    for (const { value } of samples) assert.ok(!Number.isNaN(value), `${name} is a number`);
  }
  const open = parseExposition(await scrape('application/openmetrics-text'), 'openmetrics');
  assert.deepEqual(
    open.map(({ name, type }) => (type === 'counter' ? `${name}_total` : name)),
    families.map(({ name }) => name),
  );
});

test('promtool finds nothing to complain of', { skip }, async () => {
  await using service = await busyService();
  assert.equal(promtoolFindings(await (await fetch(service.scrapeUrl)).text()), '');
  assert.match(promtoolFindings('# TYPE x counter\nx 1\n'), /counter metrics should have "_total" suffix/);
});

test('promtool finds only one name in the meters for JVM dashboards, which those look for', { skip }, () => {
  using metrics = new Metrics();
  using _runtime = observeRuntime(metrics);
  using _jvm = addJvmMetrics(metrics);
  for (const [format, kind] of [[TEXT, 'text'] as const, [OPEN_METRICS, 'openmetrics'] as const]) {
    const text = [...new Exposition(metrics).chunks(format)].join('');
    const names = parseExposition(text, kind).map(({ name }) => name);
    for (const name of ['jvm_memory_used_bytes', 'jvm_gc_pause_seconds', 'jvm_gc_pause_seconds_max']) {
      assert.ok(names.includes(name), name);
    }
    if (kind === 'text') assert.match(promtoolFindings(text), /^exit 3: system_cpu_count [^\n]*\n$/);
  }
});

test('Prometheus scrapes it and answers questions about it', { skip }, async () => {
  await using service = await busyService();
  await using prometheus = await startPrometheus({ portico: service.scrapeUrl });
  assert.equal((await prometheus.find('up')).value, 1, JSON.stringify(await prometheus.api('targets')));

  const users = await prometheus.find(
    'http_server_requests_seconds_count{door="rest",uri="/users",method="GET"}',
  );
  assert.equal(users.value, 3);
  assert.equal(users.metric.status, '200');
  const unknown = await prometheus.find('sum by (uri) (http_server_requests_seconds_count{status="404"})');
  assert.deepEqual(unknown, { metric: { uri: 'none' }, value: 1 });
  const quantile = 'histogram_quantile(0.99, sum by (le) (http_server_requests_seconds_bucket))';
  assert.ok((await prometheus.find(`${quantile} > 0`)).value <= 5);
  const average =
    'sum(http_server_requests_seconds_sum) / sum(http_server_requests_seconds_count) <= max(http_server_requests_seconds_max)';
  assert.ok((await prometheus.find(average)).value > 0);

  assert.equal((await prometheus.find('database_writes_total{outcome="stored"} > 0')).metric.job, 'portico');
  assert.ok((await prometheus.find('time() - process_start_time_seconds')).value < 600);
  assert.equal((await prometheus.find('nodejs_version_info')).metric.version, process.version);
  assert.ok((await prometheus.find('process_resident_memory_bytes')).value > 10_000_000);
  // It scrapes again and again, so rates can be told.
  assert.ok((await prometheus.find('rate(process_cpu_seconds_total[10s])')).value > 0);

  const metadata = (await prometheus.api('targets/metadata?metric=nodejs_heap_size_used_bytes')) as unknown[];
  assert.deepEqual(
    metadata.map((entry) => ({ ...(entry as object), target: undefined })),
    [{ target: undefined, type: 'gauge', help: 'Used size of the JavaScript heap', unit: 'bytes' }],
  );
});

test('Prometheus reads every text that a label may hold', { skip }, async () => {
  using metrics = new Metrics();
  const texts = [
    'plain',
    '',
    ' ',
    '"',
    '\\',
    '\n',
    '\r',
    '\\n',
    '{a="b"}',
    '#',
    ',',
    '\0',
    'ä\u{1f600}',
    '\u2028',
  ];
  for (const [i, text] of texts.entries()) {
    metrics.gauge('odd', { description: `Odd "texts"\\\n${text}`, tags: { text } }, () => i);
  }
  await using app = Fastify();
  await app.register(management, {
    basePath: '/actuator',
    include: ['prometheus'],
    exclude: [],
    showValues: 'never',
    users: [],
    role: undefined,
    build: { version: '1', artifact: 'a', name: 'A' },
    health: new HealthRegistry([]),
    readiness: new Readiness(),
    metrics,
    environment: { activeProfiles: [], propertySources: [] },
    endpoints: [],
  });
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  assert.equal(promtoolFindings(await (await fetch(`${url}/actuator/prometheus`)).text()), '');
  await using prometheus = await startPrometheus({ odd: `${url}/actuator/prometheus` });
  const found = new Map(
    (await prometheus.query('odd')).map(({ metric, value }) => [value, metric.text ?? '']),
  );
  assert.deepEqual(
    texts.map((_text, i) => found.get(i)),
    texts.map((text) => text.replace('\0', '\ufffd')),
  );
});
