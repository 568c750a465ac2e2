import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { waitFor } from '../../../test/support/wait-for.ts';
import { Metrics } from '../metrics/metrics.ts';
import { type CpuTime, usage } from './cpu-usage.ts';
import { addJvmMetrics } from './jvm-metrics.ts';
import { observeRuntime } from './runtime-metrics.ts';

/** The sum of the values of those series of a meter that have a tag. */
function sum(metrics: Metrics, name: string, key?: string, value?: string): number {
  const meter = metrics.meter(name) ?? assert.fail(`there is no ${name}`);
  const series = [...meter.series()].filter(
    ({ tags }) => key === undefined || tags.some((tag) => tag.key === key && tag.value === value),
  );
  assert.ok(series.length > 0, `${name} has no ${key} ${value}`);
  return series
    .flatMap((one) => one.measure())
    .filter(({ statistic }) => statistic === 'VALUE')
    .reduce((total, measurement) => total + measurement.value, 0);
}

test('memory comes from the spaces of V8', () => {
  using metrics = new Metrics();
  using _jvm = addJvmMetrics(metrics);
  const of = (aspect: string, area: string) => sum(metrics, `jvm.memory.${aspect}`, 'area', area);
  const { heap_size_limit: limit } = getHeapStatistics();
  const before = of('used', 'nonheap');
  const hold = new ArrayBuffer(50_000_000);
  assert.ok(of('used', 'nonheap') >= before + hold.byteLength);
  assert.ok(of('used', 'heap') > 1_000_000);
  assert.ok(of('committed', 'heap') >= of('used', 'heap'));
  // Every other pool is -1.
  assert.ok(of('max', 'heap') <= limit && of('max', 'heap') > limit - 100);
  assert.equal(of('max', 'nonheap'), -1);
});

test('pauses of the garbage collector have the tags of a JVM, whether or not they are observed already', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (const observed of [true, false]) {
    using metrics = new Metrics();
    using _runtime = observed ? observeRuntime(metrics) : undefined;
    using _jvm = addJvmMetrics(metrics);
    const { type, tagKeys, series } = metrics.meter('jvm.gc.pause') ?? assert.fail();
    assert.equal(type, 'timer');
    assert.deepEqual(tagKeys, ['action', 'cause']);
    const actions = [...series()].map(({ tags }) => tags[0]?.value);
    assert.ok(actions.includes('minor') && actions.includes('major'), actions.join());
    const major = [...series()].find(({ tags }) => tags[0]?.value === 'major') ?? assert.fail();
    collect();
    await waitFor('the pause to be timed', () => (major.measure()[0]?.value ?? 0) > 0);
    assert.equal(major.tags[1]?.value, 'V8');
  }
});

test('processors and threads', { skip: process.platform !== 'linux' && 'needs /proc' }, () => {
  using metrics = new Metrics();
  using _jvm = addJvmMetrics(metrics);
  assert.ok(sum(metrics, 'system.cpu.count') >= 1);
  for (const name of ['system.cpu.usage', 'process.cpu.usage']) {
    const share = sum(metrics, name);
    assert.ok(share >= 0 && share <= 1, `${name}: ${share}`);
  }
  const live = sum(metrics, 'jvm.threads.live');
  assert.ok(live > 1);
  assert.equal(sum(metrics, 'jvm.threads.daemon'), live - 1);
  assert.ok(sum(metrics, 'jvm.threads.peak') >= live);
});

test('a second time it adds nothing', () => {
  using metrics = new Metrics();
  using _jvm = addJvmMetrics(metrics);
  const names = metrics.names();
  using _again = addJvmMetrics(metrics);
  assert.equal(metrics.names(), names);
});

test('a usage is of the time since the last look that is a second ago', () => {
  let now = 0;
  let time: CpuTime = { busy: 50, total: 100 };
  const share = usage(
    () => time,
    () => now,
  );
  assert.equal(share(), 0);
  now = 999;
  time = { busy: 80, total: 200 };
  assert.equal(share(), 0);
  now = 1_000;
  assert.equal(share(), 0.3);
  time = { busy: 180, total: 300 };
  assert.equal(share(), 0.3, 'too early');
  now = 2_000;
  assert.equal(share(), 1);
  now = 3_000;
  assert.equal(share(), 1, 'nothing is known');
});
