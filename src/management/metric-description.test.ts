import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Meter } from '../observability/metrics/meter.ts';
import { Metrics } from '../observability/metrics/metrics.ts';
import { describeMetric } from './metric-description.ts';

const meterOf = (metrics: Metrics, name: string): Meter => metrics.meter(name) ?? assert.fail(name);

test('counts and times are added, maxima are the largest, the given tag is no longer open', () => {
  using metrics = new Metrics();
  const timer = metrics.timer('http.server.requests', {
    description: 'Requests',
    tags: ['uri', 'status'],
  });
  timer.with('uri', '/a', 'status', '200').record(1);
  timer.with('uri', '/a', 'status', '500').record(0.5);
  timer.with('uri', '/b', 'status', '200').record(4);
  const meter = meterOf(metrics, 'http.server.requests');
  assert.deepEqual(describeMetric(meter, []), {
    name: 'http.server.requests',
    description: 'Requests',
    baseUnit: 'seconds',
    measurements: [
      { statistic: 'COUNT', value: 3 },
      { statistic: 'TOTAL_TIME', value: 5.5 },
      { statistic: 'MAX', value: 4 },
    ],
    availableTags: [
      { tag: 'uri', values: ['/a', '/b'] },
      { tag: 'status', values: ['200', '500'] },
    ],
  });
  assert.deepEqual(describeMetric(meter, [{ key: 'uri', value: '/a' }]), {
    name: 'http.server.requests',
    description: 'Requests',
    baseUnit: 'seconds',
    measurements: [
      { statistic: 'COUNT', value: 2 },
      { statistic: 'TOTAL_TIME', value: 1.5 },
      { statistic: 'MAX', value: 1 },
    ],
    availableTags: [{ tag: 'status', values: ['200', '500'] }],
  });
});

test('a meter without a series has measured nothing; with tags there is nothing to show', () => {
  using metrics = new Metrics();
  metrics.timer('t', { description: 'x', tags: ['k'] });
  assert.deepEqual(describeMetric(meterOf(metrics, 't'), [])?.measurements, [
    { statistic: 'COUNT', value: 0 },
    { statistic: 'TOTAL_TIME', value: 0 },
    { statistic: 'MAX', value: 0 },
  ]);
  assert.equal(describeMetric(meterOf(metrics, 't'), [{ key: 'k', value: 'v' }]), undefined);
});

test('what is no JSON number is written by its name', () => {
  using metrics = new Metrics();
  for (const value of [Number.NaN, Infinity, -Infinity]) {
    metrics.gauge(
      `g.${String(value).replace(/\W/g, 'minus').toLowerCase()}`,
      { description: 'x' },
      () => value,
    );
  }
  const values = [...metrics.meters()].flatMap(
    (meter) => describeMetric(meter, [])?.measurements.map(({ value }) => value) ?? [],
  );
  assert.deepEqual(values, ['Infinity', '-Infinity', 'NaN']);
});

test('any drill-down is what a list of all records gives', () => {
  const tags = fc.tuple(fc.constantFrom('x', 'y', 'overflow'), fc.constantFrom('1', '2', '3'));
  const record = fc.tuple(tags, fc.nat(50));
  const asked = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('x', 'y', '1', '2', 'z')), {
    maxLength: 3,
  });
  fc.assert(
    fc.property(fc.array(record), asked, (records, filter) => {
      using metrics = new Metrics();
      const timer = metrics.timer('t', { description: 'x', tags: ['a', 'b'] });
      for (const [[a, b], seconds] of records) timer.with('a', a, 'b', b).record(seconds);

      const matching = records.filter(([[a, b]]) =>
        filter.every(([key, value]) => (key === 'a' && value === a) || (key === 'b' && value === b)),
      );
      const found = describeMetric(
        meterOf(metrics, 't'),
        filter.map(([key, value]) => ({ key, value })),
      );
      if (matching.length === 0 && filter.length > 0) return assert.equal(found, undefined);
      const values = matching.map(([, seconds]) => seconds);
      assert.deepEqual(found?.measurements, [
        { statistic: 'COUNT', value: values.length },
        { statistic: 'TOTAL_TIME', value: values.reduce((sum, value) => sum + value, 0) },
        { statistic: 'MAX', value: Math.max(0, ...values) },
      ]);
      const open = (['a', 'b'] as const)
        .map((tag, i) => ({ tag, values: [...new Set(matching.map(([pair]) => pair[i]))].sort() }))
        .filter(({ tag, values: ofTag }) => ofTag.length > 0 && !filter.some(([key]) => key === tag));
      assert.deepEqual(found?.availableTags, open);
    }),
  );
});
