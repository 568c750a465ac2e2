import assert from 'node:assert/strict';
import { mkdir, rmdir, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { Metrics } from './metrics.ts';
import { addDiskMetrics, addJvmMetrics, observeRuntime, usage } from './runtime.ts';

type CpuTime = ReturnType<Parameters<typeof usage>[0]>;

describe('runtime metrics', () => {
  /** The only value of a meter, or of its series with a tag value. */
  function read(metrics: Metrics, name: string, tag?: string): number {
    const all = Array.from(metrics.meter(name)?.series() ?? assert.fail(`no meter ${name}`));
    const series = all.find(({ tags }) => tag === undefined || tags.some(({ value }) => value === tag));
    return series?.measure()[0]?.value ?? assert.fail(`no series of ${name}`);
  }

  test('the meters of the process agree with what the process says of itself', () => {
    using metrics = new Metrics();
    using _observed = observeRuntime(metrics);
    const near = (name: string, expected: number, tolerance: number) => {
      const value = read(metrics, name);
      assert.ok(Math.abs(value - expected) <= tolerance, `${name} is ${value}, not about ${expected}`);
    };
    near('process.start.time', Date.now() / 1_000 - process.uptime(), 2);
    near('process.uptime', process.uptime(), 1);
    near('process.resident.memory', process.memoryUsage.rss(), 50e6);
    const { user, system } = process.cpuUsage();
    near('process.cpu', (user + system) / 1e6, 1);
    const both = read(metrics, 'process.cpu.user') + read(metrics, 'process.cpu.system');
    near('process.cpu', both, 1e-9);
    near('nodejs.heap.size.used', process.memoryUsage().heapUsed, 20e6);
    assert.ok(read(metrics, 'nodejs.heap.size.limit') > read(metrics, 'nodejs.heap.size.total'));
    assert.ok(read(metrics, 'nodejs.heap.space.size.used', 'old') > 0);
    const [version] = metrics.meter('nodejs.version.info')?.series() ?? [];
    assert.equal(version?.tags[0]?.value, process.version);
  });

  test('file descriptors and memory as Linux counts them', {
    skip: process.platform !== 'linux',
  }, async () => {
    using metrics = new Metrics();
    using _observed = observeRuntime(metrics);
    const { open } = await import('node:fs/promises');
    const before = read(metrics, 'process.open.fds');
    await using _file = await open(import.meta.filename);
    assert.equal(read(metrics, 'process.open.fds'), before + 1);
    assert.ok(read(metrics, 'process.max.fds') > before);
    assert.ok(read(metrics, 'process.virtual.memory') > read(metrics, 'process.resident.memory'));
  });

  test('pauses of the garbage collector are timed by kind, until it is disposed of', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    using metrics = new Metrics();
    {
      using _observed = observeRuntime(metrics);
      collect();
      await waitFor('the pause to be timed', () => read(metrics, 'nodejs.gc.duration', 'major') > 0);
      const [, total] =
        Array.from(metrics.meter('nodejs.gc.duration')?.series() ?? [])
          .find(({ tags }) => tags[0]?.value === 'major')
          ?.measure() ?? [];
      assert.ok((total?.value ?? 0) > 0 && (total?.value ?? 0) < 5, 'in seconds');
    }
    const before = read(metrics, 'nodejs.gc.duration', 'major');
    collect();
    // Entries reach observers in a turn of the loop of their own.
    for (let i = 0; i < 3; i++) await new Promise(setImmediate);
    assert.equal(read(metrics, 'nodejs.gc.duration', 'major'), before);
  });

  test('an event loop that was blocked shows it, in seconds', async () => {
    using metrics = new Metrics();
    using _observed = observeRuntime(metrics);
    await new Promise((resolve) => setTimeout(resolve, 50));
    for (const began = performance.now(); performance.now() - began < 300; );
    await waitFor('the delay to be seen', () => read(metrics, 'nodejs.eventloop.lag.max') > 0.2);
    assert.ok(read(metrics, 'nodejs.eventloop.lag.max') < 30);
    const utilization = read(metrics, 'nodejs.eventloop.utilization');
    assert.ok(utilization > 0 && utilization <= 1, String(utilization));
  });
});

describe('disk metrics', () => {
  test('the disk with the data is measured at once, again later, and is no number without its folder', async (t) => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'data');
    await mkdir(path);
    let later = 0;
    const now = performance.now.bind(performance);
    t.mock.method(performance, 'now', () => now() + later);
    using metrics = new Metrics();
    addDiskMetrics(metrics, path);
    const value = (name: string) => [...(metrics.meter(name)?.series() ?? [])][0]?.measure()[0]?.value;
    const { bsize, blocks } = await statfs(path);
    assert.equal(value('disk.total'), bsize * blocks);
    assert.ok((value('disk.free') ?? 0) > 0);
    await rmdir(path);
    assert.ok((value('disk.free') ?? 0) > 0, 'a reading is used for a while');
    later = 6_000;
    value('disk.free');
    await waitFor('no number', () => Number.isNaN(value('disk.free')));
  });
});

describe('jvm metrics', () => {
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
});
