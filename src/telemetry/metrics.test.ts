import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Metrics } from './metrics.ts';

/** A meter's series as `tags -> measurements`. */
function dump(metrics: Metrics, name: string): Record<string, Record<string, number>> {
  return Object.fromEntries(
    Array.from(metrics.meter(name)?.series() ?? [], (series) => [
      series.tags.map(({ key, value }) => `${key}=${value}`).join(),
      Object.fromEntries(series.measure().map(({ statistic, value }) => [statistic, value])),
    ]),
  );
}

test('a counter without tags is one series, from the start', () => {
  using metrics = new Metrics();
  const counter = metrics.counter('webhook.received', { description: 'Deliveries', unit: 'deliveries' });
  assert.deepEqual(dump(metrics, 'webhook.received'), { '': { COUNT: 0 } });
  counter.increment();
  counter.increment(2.5);
  for (const wrong of [-1, Number.NaN, Infinity]) counter.increment(wrong);
  assert.deepEqual(dump(metrics, 'webhook.received'), { '': { COUNT: 3.5 } });
  const { name, type, description, unit, tagKeys } = metrics.meter('webhook.received') ?? assert.fail();
  assert.deepEqual(
    { name, type, description, unit, tagKeys },
    {
      name: 'webhook.received',
      type: 'counter',
      description: 'Deliveries',
      unit: 'deliveries',
      tagKeys: [],
    },
  );
});

test('each tag combination is a series of its own, always the same object', () => {
  using metrics = new Metrics();
  const requests = metrics.counter('http.requests', { description: 'x', tags: ['door', 'status'] });
  assert.deepEqual(dump(metrics, 'http.requests'), {});
  const bound = requests.with('door', 'rest', 'status', '200');
  bound.increment();
  requests.with('door', 'rest', 'status', '200').increment();
  requests.with('door', 'rest', 'status', '404').increment();
  requests.with('door', '200', 'status', 'rest').increment();
  assert.equal(requests.with('door', 'rest', 'status', '200'), bound);
  assert.deepEqual(dump(metrics, 'http.requests'), {
    'door=rest,status=200': { COUNT: 2 },
    'door=rest,status=404': { COUNT: 1 },
    'door=200,status=rest': { COUNT: 1 },
  });
});

test('a timer keeps count, total and maximum in seconds', () => {
  using metrics = new Metrics();
  const timer = metrics.timer('http.server.requests', { description: 'x', tags: ['door'] });
  const rest = timer.with('door', 'rest');
  for (const seconds of [0.25, 1.5, 0, -1, Number.NaN, Infinity]) rest.record(seconds);
  assert.deepEqual(dump(metrics, 'http.server.requests'), {
    'door=rest': { COUNT: 3, TOTAL_TIME: 1.75, MAX: 1.5 },
  });
  assert.equal(metrics.meter('http.server.requests')?.unit, 'seconds');
  metrics.timer('plain', { description: 'x' }).record(2);
  assert.deepEqual(dump(metrics, 'plain'), { '': { COUNT: 1, TOTAL_TIME: 2, MAX: 2 } });
});

test('the maximum is over the last three windows', () => {
  using metrics = new Metrics();
  const timer = metrics.timer('t', { description: 'x' });
  const max = () => dump(metrics, 't')['']?.MAX;
  timer.record(9);
  metrics.window.advance();
  timer.record(4);
  assert.equal(max(), 9);
  metrics.window.advance();
  assert.equal(max(), 9);
  metrics.window.advance();
  assert.equal(max(), 4, 'the 9 is three windows old');
  timer.record(2);
  metrics.window.advance();
  assert.equal(max(), 2);
  timer.record(1);
  for (let i = 0; i < 3; i++) metrics.window.advance();
  assert.equal(max(), 0);
  assert.deepEqual(dump(metrics, 't'), { '': { COUNT: 4, TOTAL_TIME: 16, MAX: 0 } });
});

test('the recent maximum is that of a list of windows, however often it is looked at', () => {
  const step = fc.oneof(fc.nat(100), fc.constant('advance' as const), fc.constant('look' as const));
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      using metrics = new Metrics();
      const timer = metrics.timer('t', { description: 'x' });
      const windows: number[][] = [[]];
      for (const each of steps) {
        if (each === 'advance') {
          metrics.window.advance();
          windows.unshift([]);
        } else if (each === 'look') {
          assert.equal(dump(metrics, 't')['']?.MAX, Math.max(0, ...windows.slice(0, 3).flat()));
        } else {
          timer.record(each);
          windows[0]?.push(each);
        }
      }
      assert.equal(dump(metrics, 't')['']?.MAX, Math.max(0, ...windows.slice(0, 3).flat()));
    }),
  );
});

test('a timer with buckets counts each value in the lowest bucket that holds it', () => {
  using metrics = new Metrics();
  const timer = metrics.timer('t', { description: 'x', buckets: [0.1, 1] });
  for (const seconds of [0, 0.1, 0.11, 1, 1.1, 50]) timer.record(seconds);
  assert.deepEqual(metrics.meter('t')?.buckets, [0.1, 1]);
  const [series] = metrics.meter('t')?.series() ?? [];
  assert.deepEqual(Array.from(series?.bucketCounts ?? []), [2, 2, 2]);
});

test('a counter that is kept elsewhere is read when looked at', () => {
  using metrics = new Metrics();
  let reads = 1;
  metrics.counter('db.reads', { description: 'x', tags: { operation: 'user' } }, () => reads);
  reads = 7;
  assert.deepEqual(dump(metrics, 'db.reads'), { 'operation=user': { COUNT: 7 } });
  assert.equal(metrics.meter('db.reads')?.type, 'counter');
  assert.throws(() => metrics.gauge('db.reads', { description: 'x', tags: { operation: 'x' } }, () => 1));
  assert.throws(() => metrics.counter('db.reads', { description: 'x' }), { code: 'METER' });
});

test('gauges are read when looked at; one that throws is no number', () => {
  using metrics = new Metrics();
  let size = 1;
  metrics.gauge('inbox.size', { description: 'x', tags: { status: 'pending' } }, () => size);
  metrics.gauge('inbox.size', { description: 'x', tags: { status: 'done' } }, () => {
    throw new Error('closed');
  });
  size = 5;
  assert.deepEqual(dump(metrics, 'inbox.size'), {
    'status=pending': { VALUE: 5 },
    'status=done': { VALUE: Number.NaN },
  });
});

test('names are sorted, cached, and the meters come in their order', () => {
  using metrics = new Metrics();
  for (const name of ['b', 'a.c', 'a.b']) metrics.counter(name, { description: 'x' });
  const names = metrics.names();
  assert.deepEqual(names, ['a.b', 'a.c', 'b']);
  assert.equal(metrics.names(), names);
  metrics.gauge('a', { description: 'x' }, () => 1);
  assert.deepEqual(metrics.names(), ['a', 'a.b', 'a.c', 'b']);
  assert.deepEqual(
    [...metrics.meters()].map(({ name }) => name),
    metrics.names(),
  );
});

test('the same declaration is shared; a contradicting one is refused', () => {
  using metrics = new Metrics();
  const first = metrics.counter('a', { description: 'x' });
  assert.equal(metrics.counter('a', { description: 'x' }), first);
  metrics
    .counter('t', { description: 'x', tags: ['k'] })
    .with('k', 'v')
    .increment();
  metrics
    .counter('t', { description: 'x', tags: ['k'] })
    .with('k', 'v')
    .increment();
  assert.deepEqual(dump(metrics, 't'), { 'k=v': { COUNT: 2 } });
  metrics.gauge('g', { description: 'x', tags: { k: '1' } }, () => 1);

  const refused = [
    () => metrics.timer('a', { description: 'x' }),
    () => metrics.gauge('a', { description: 'x' }, () => 1),
    () => metrics.counter('t', { description: 'x' }),
    () => metrics.counter('t', { description: 'x', tags: ['other'] }),
    () => metrics.gauge('g', { description: 'x', tags: { k: '1' } }, () => 1),
    () => metrics.gauge('g', { description: 'x', tags: { other: '2' } }, () => 1),
    () => metrics.gauge('g', { description: 'x' }, () => 1),
    () => metrics.counter('', { description: 'x' }),
    () => metrics.counter('Upper.case', { description: 'x' }),
    () => metrics.counter('a..b', { description: 'x' }),
    () => metrics.counter('u', { description: 'x', unit: 'per cent' }),
    () => metrics.counter('u', { description: 'x', tags: ['Upper'] }),
    () => metrics.counter('u', { description: 'x', tags: ['le'] }),
    () => metrics.counter('u', { description: 'x', tags: ['a.b', 'a_b'] }),
    () => metrics.timer('u', { description: 'x', buckets: [1, 1] }),
    () => metrics.timer('u', { description: 'x', buckets: [0] }),
  ];
  for (const declare of refused) assert.throws(declare, { code: 'METER' }, declare.toString());
});

test('tags that are not the declared ones are refused', () => {
  const tagged = new Metrics().counter('t', { description: 'x', tags: ['a', 'b'] });
  const withAny = tagged.with as (...pairs: string[]) => unknown;
  for (const pairs of [
    [],
    ['a', '1'],
    ['b', '1', 'a', '2'],
    ['a', '1', 'b'],
    ['a', '1', 'b', '2', 'c', '3'],
  ]) {
    assert.throws(() => withAny(...pairs), { code: 'METER' });
  }
});

test('past the cap everything goes to one series, and that is told once', () => {
  const told: unknown[] = [];
  using metrics = new Metrics({ maxSeries: 2, log: { warn: (entry: unknown) => told.push(entry) } });
  const counter = metrics.counter('t', { description: 'x', tags: ['k'] });
  for (const value of ['a', 'b', 'c', 'd', 'a', 'c']) counter.with('k', value).increment();
  assert.deepEqual(dump(metrics, 't'), {
    'k=a': { COUNT: 2 },
    'k=b': { COUNT: 1 },
    'k=overflow': { COUNT: 3 },
  });
  assert.deepEqual(told, [{ meter: 't', maxSeries: 2 }]);
  assert.deepEqual(dump(metrics, 'meters.overflow'), { 'meter=t': { COUNT: 3 } });

  for (const k of ['1', '2', '3', '4']) metrics.gauge('g', { description: 'x', tags: { k } }, () => 1);
  assert.deepEqual(Object.keys(dump(metrics, 'g')), ['k=1', 'k=2']);
  assert.deepEqual(told, [
    { meter: 't', maxSeries: 2 },
    { meter: 'g', maxSeries: 2 },
  ]);
  assert.deepEqual(dump(metrics, 'meters.overflow'), { 'meter=t': { COUNT: 3 }, 'meter=g': { COUNT: 2 } });
});

test('1,000 series unless told otherwise', () => {
  using metrics = new Metrics();
  const counter = metrics.counter('t', { description: 'x', tags: ['k'] });
  for (let i = 0; i < 1_500; i++) counter.with('k', String(i)).increment();
  const series = [...(metrics.meter('t')?.series() ?? [])];
  assert.equal(series.length, 1_001);
  assert.deepEqual(series[1_000]?.measure(), [{ statistic: 'COUNT', value: 500 }]);
});

test('the series of any sequence of increments are what a plain map would hold', () => {
  const value = fc.constantFrom('', 'a', 'b', 'ab', 'overflow', '__proto__', '\u0000');
  fc.assert(
    fc.property(fc.array(fc.tuple(value, value)), fc.integer({ min: 0, max: 12 }), (events, maxSeries) => {
      using metrics = new Metrics({ maxSeries });
      const counter = metrics.counter('t', { description: 'x', tags: ['a', 'b'] });
      const model = new Map<string, number>();
      let overflow = 0;
      for (const [a, b] of events) {
        counter.with('a', a, 'b', b).increment();
        const key = JSON.stringify([a, b]);
        const room = model.has(key) || model.size < maxSeries;
        const shared = '["overflow","overflow"]';
        if (room) model.set(key, (model.get(key) ?? 0) + 1);
        else if (model.has(shared)) model.set(shared, (model.get(shared) ?? 0) + 1);
        else overflow++;
      }
      const all = [...(metrics.meter('t')?.series() ?? [])].map((series) => [
        JSON.stringify(series.tags.map((tag) => tag.value)),
        series.measure()[0]?.value,
      ]);
      const expected = [...model] as unknown[][];
      assert.deepEqual(all.slice(0, model.size), expected);
      assert.deepEqual(all.slice(model.size), overflow === 0 ? [] : [['["overflow","overflow"]', overflow]]);
    }),
  );
});
