import assert from 'node:assert/strict';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import Fastify, { type FastifyInstance } from 'fastify';
import { parseExposition } from '../../../test/support/exposition.ts';
import { anyCharacter } from '../../../test/support/random.ts';
import { Metrics } from '../../telemetry/metrics.ts';
import { refuse } from '../management-errors.ts';
import { addRoutes } from '../operations.ts';
import { Exposition, formatFor, OPEN_METRICS, prometheusEndpoint, TEXT } from './prometheus.ts';

const CHUNK_LINES = 500;

type Format = ReturnType<typeof formatFor>;

describe('prometheus', () => {
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
});

describe('exposition', () => {
  const text = (metrics: Metrics, format = TEXT, included?: ReadonlySet<string>): string =>
    [...new Exposition(metrics).chunks(format, included)].join('');

  function sampleMetrics(): Metrics {
    const metrics = new Metrics();
    metrics.counter('process.cpu', { description: 'CPU time', unit: 'seconds' }).increment(1.5);
    metrics.gauge('nodejs.heap.size.used', { description: 'Heap', unit: 'bytes' }, () => 1024);
    const timer = metrics.timer('db.reads', { description: 'A "read"\\\n', tags: ['op'] });
    timer.with('op', 'a"b\\c\nd').record(0.25);
    const requests = metrics.timer('http.server.requests', { description: 'x', buckets: [0.1, 1] });
    for (const seconds of [0.05, 0.5, 5]) requests.record(seconds);
    return metrics;
  }

  test('the text format, line by line', () => {
    using metrics = sampleMetrics();
    assert.equal(
      text(metrics),
      `# HELP db_reads_seconds A "read"\\\\\\n
# TYPE db_reads_seconds summary
db_reads_seconds_count{op="a\\"b\\\\c\\nd"} 1
db_reads_seconds_sum{op="a\\"b\\\\c\\nd"} 0.25
# HELP db_reads_seconds_max A "read"\\\\\\n
# TYPE db_reads_seconds_max gauge
db_reads_seconds_max{op="a\\"b\\\\c\\nd"} 0.25
# HELP http_server_requests_seconds x
# TYPE http_server_requests_seconds histogram
http_server_requests_seconds_bucket{le="0.1"} 1
http_server_requests_seconds_bucket{le="1.0"} 2
http_server_requests_seconds_bucket{le="+Inf"} 3
http_server_requests_seconds_count 3
http_server_requests_seconds_sum 5.55
# HELP http_server_requests_seconds_max x
# TYPE http_server_requests_seconds_max gauge
http_server_requests_seconds_max 5
# HELP nodejs_heap_size_used_bytes Heap
# TYPE nodejs_heap_size_used_bytes gauge
nodejs_heap_size_used_bytes 1024
# HELP process_cpu_seconds_total CPU time
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 1.5
`,
    );
  });

  test('OpenMetrics names counters without their suffix, knows units and ends', () => {
    using metrics = sampleMetrics();
    const lines = text(metrics, OPEN_METRICS).split('\n');
    assert.deepEqual(lines.slice(-6), [
      '# TYPE process_cpu_seconds counter',
      '# UNIT process_cpu_seconds seconds',
      '# HELP process_cpu_seconds CPU time',
      'process_cpu_seconds_total 1.5',
      '# EOF',
      '',
    ]);
    assert.ok(lines.includes('# HELP db_reads_seconds A \\"read\\"\\\\\\n'));
    assert.ok(!lines.includes('# UNIT db_reads_seconds_max seconds'));
    assert.equal(text(new Metrics(), OPEN_METRICS), '# EOF\n');
    assert.equal(text(new Metrics()), '');
  });

  test('some families by any of their names', () => {
    using metrics = sampleMetrics();
    const names = (...included: string[]) =>
      parseExposition(text(metrics, TEXT, new Set(included)), 'text').map(({ name }) => name);
    assert.deepEqual(names('process_cpu_seconds_total'), ['process_cpu_seconds_total']);
    assert.deepEqual(names('process_cpu_seconds'), ['process_cpu_seconds_total']);
    assert.deepEqual(names('http_server_requests_seconds_bucket', 'db_reads_seconds_max', 'nothing'), [
      'db_reads_seconds_max',
      'http_server_requests_seconds',
    ]);
    assert.deepEqual(names(''), []);
  });

  test('a meter that would take the name of another one is left out and told of, once', () => {
    using metrics = new Metrics();
    for (const name of ['a.b', 'a_b']) metrics.gauge(name, { description: 'x' }, () => 1);
    metrics.timer('t', { description: 'x' });
    metrics.gauge('t.seconds.max', { description: 'x' }, () => 1);
    metrics.counter('c', { description: 'x' });
    metrics.gauge('c.total', { description: 'x' }, () => 1);
    const told: string[] = [];
    const exposition = new Exposition(metrics, (meter) => told.push(meter));
    for (let i = 0; i < 2; i++) {
      const families = parseExposition([...exposition.chunks(TEXT)].join(''), 'text');
      assert.deepEqual(
        families.map(({ name }) => name),
        ['a_b', 'c_total', 't_seconds', 't_seconds_max'],
      );
    }
    assert.deepEqual(told, ['a_b', 'c.total', 't.seconds.max']);
  });

  test('what comes after a scrape is in the next one, of the cap too', () => {
    using metrics = new Metrics({ maxSeries: 2 });
    const counter = metrics.counter('c', { description: 'x', tags: ['k'] });
    const exposition = new Exposition(metrics);
    const scrape = () =>
      parseExposition([...exposition.chunks(TEXT)].join(''), 'text').map(({ name, samples }) => [
        name,
        samples.map(({ labels, value }) => [Object.values(labels).join(), value]),
      ]);
    assert.deepEqual(scrape(), []);
    counter.with('k', 'a').increment();
    assert.deepEqual(scrape(), [['c_total', [['a', 1]]]]);
    counter.with('k', 'a').increment();
    for (const k of ['b', 'c', 'd']) counter.with('k', k).increment();
    assert.deepEqual(scrape(), [
      [
        'c_total',
        [
          ['a', 2],
          ['b', 1],
          ['overflow', 2],
        ],
      ],
      ['meters_overflow_total', [['c', 2]]],
    ]);
  });

  test('chunks are of bounded size, and meters grow meanwhile without harm', () => {
    using metrics = new Metrics({ maxSeries: 5_000 });
    const timer = metrics.timer('t', { description: 'x', tags: ['k'], buckets: [1, 2] });
    for (let i = 0; i < 2_000; i++) timer.with('k', String(i)).record(1);
    let chunks = 0;
    let all = '';
    for (const chunk of new Exposition(metrics).chunks(TEXT)) {
      chunks++;
      all += chunk;
      assert.ok(chunk.split('\n').length <= CHUNK_LINES + 10, 'no chunk is larger');
      timer.with('k', `late ${chunks}`).record(1);
    }
    assert.ok(chunks >= (2_000 * 6) / CHUNK_LINES);
    const [histogram] = parseExposition(all, 'text');
    assert.ok((histogram?.samples.length ?? 0) >= 2_000 * 5);
  });

  const word = fc.stringMatching(/^[a-z][a-z0-9]{0,4}$/);
  const anyText = fc.array(
    fc.oneof(
      fc.string({ unit: anyCharacter }),
      fc.constantFrom('"', '\\', '\n', '\r', '\0', '{', '}', ',', '=', ' ', '#'),
    ),
    { maxLength: 6 },
  );
  const joined = anyText.map((parts) => parts.join(''));
  const declaration = fc.record({
    name: fc.array(word, { minLength: 1, maxLength: 3 }).map((words) => words.join('.')),
    type: fc.constantFrom('counter' as const, 'gauge' as const, 'timer' as const, 'histogram' as const),
    description: joined,
    unit: fc.option(fc.constantFrom('bytes', 'seconds'), { nil: undefined }),
    keys: fc.uniqueArray(
      word.filter((key) => key !== 'le'),
      { minLength: 1, maxLength: 3 },
    ),
    values: fc.array(joined, { minLength: 3, maxLength: 3 }),
    number: fc.oneof(fc.double({ noNaN: false }), fc.nat()),
  });

  test('any meter is written so that a strict parser reads back what it holds, in both formats', () => {
    const visible = (value: string) => value.replaceAll('\0', '\ufffd');
    fc.assert(
      fc.property(fc.array(declaration, { maxLength: 6 }), (declarations) => {
        using metrics = new Metrics();
        const conflicts = new Set<string>();
        const exposition = new Exposition(metrics, (meter) => conflicts.add(meter));
        const unique = declarations.filter(
          ({ name }, i) => declarations.findIndex((other) => other.name === name) === i,
        );
        for (const { name, type, description, unit, keys, values, number } of unique) {
          const tags = Object.fromEntries(keys.map((key, i) => [key, values[i] ?? '']));
          const pairs = keys.flatMap((key, i) => [key, values[i] ?? '']) as unknown as [string, string];
          if (type === 'gauge') metrics.gauge(name, { description, unit, tags }, () => number);
          else if (type === 'counter') {
            metrics
              .counter(name, { description, unit, tags: keys as unknown as [string] })
              .with(...pairs)
              .increment(number);
          } else {
            const buckets = type === 'histogram' ? [0.5, 100] : undefined;
            metrics
              .timer(name, { description, tags: keys as unknown as [string], buckets })
              .with(...pairs)
              .record(number);
          }
        }
        for (const [format, kind] of [[TEXT, 'text'] as const, [OPEN_METRICS, 'openmetrics'] as const]) {
          const families = parseExposition([...exposition.chunks(format)].join(''), kind);
          const samples = families.flatMap((family) => family.samples);
          for (const { name, type, description, unit, keys, values, number } of unique) {
            if (conflicts.has(name)) continue;
            let base = name.replaceAll('.', '_');
            const ending = type === 'gauge' || type === 'counter' ? unit : 'seconds';
            if (type === 'counter') base = base.replace(/_total$/, '');
            if (ending !== undefined && !`_${base}`.endsWith(`_${ending}`)) base += `_${ending}`;
            const suffix = { gauge: '', counter: '_total', timer: '_sum', histogram: '_sum' }[type];
            const valid = type === 'gauge' || (number >= 0 && number < Infinity);
            const expected = {
              name: base + suffix,
              labels: Object.fromEntries(keys.map((key, i) => [key, visible(values[i] ?? '')])),
              value: valid ? number + 0 : 0,
            };
            assert.deepEqual(
              samples.find((sample) => sample.name === expected.name),
              expected,
            );
            const family = families.find((each) =>
              each.samples.some((sample) => sample.name === expected.name),
            );
            assert.equal(family?.help, visible(description));
          }
        }
      }),
      { numRuns: 300 },
    );
  });
});

describe('format', () => {
  const cases: readonly (readonly [who: string, accept: string | undefined, expected: Format])[] = [
    ['nobody', undefined, TEXT],
    ['an empty header', '', TEXT],
    ['curl', '*/*', TEXT],
    ['a browser', 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', TEXT],
    [
      'Prometheus 2.42',
      'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1',
      OPEN_METRICS,
    ],
    [
      'Prometheus 3',
      'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1',
      OPEN_METRICS,
    ],
    [
      'Prometheus with native histograms',
      'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1',
      OPEN_METRICS,
    ],
    ['Prometheus 1', 'text/plain;version=0.0.4;q=1,*/*;q=0.1', TEXT],
    ['only an OpenMetrics that is not ours', 'application/openmetrics-text;version=0.0.1,*/*;q=0.1', TEXT],
    ['no version', 'application/openmetrics-text', OPEN_METRICS],
    ['a quoted version', 'Application/OpenMetrics-Text; Version="1.0.0"', OPEN_METRICS],
    ['the older one by its weight', 'application/openmetrics-text;q=0.4,text/plain;q=0.6', TEXT],
    ['a name before a star', '*/*, application/openmetrics-text;version=1.0.0', OPEN_METRICS],
    ['one that is refused', 'application/openmetrics-text;version=1.0.0;q=0, */*', TEXT],
    ['the older one refused', 'text/plain;q=0, */*', OPEN_METRICS],
    ['none of ours', 'application/json', TEXT],
    ['a weight that is none', 'application/openmetrics-text;q=9', TEXT],
  ];

  for (const [who, accept, expected] of cases) {
    test(`${who} gets ${expected.mediaType}`, () => assert.equal(formatFor(accept), expected));
  }
});
