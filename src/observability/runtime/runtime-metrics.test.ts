import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { waitFor } from '../../../test/support/wait-for.ts';
import { Metrics } from '../metrics/metrics.ts';
import { observeRuntime } from './runtime-metrics.ts';

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

test('file descriptors and memory as Linux counts them', { skip: process.platform !== 'linux' }, async () => {
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
