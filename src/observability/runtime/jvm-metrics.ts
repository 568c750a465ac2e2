import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { getHeapSpaceStatistics, getHeapStatistics } from 'node:v8';
import type { Metrics } from '../metrics/metrics.ts';
import { sharedReading } from '../metrics/shared-reading.ts';
import { processWork, systemWork, usage } from './cpu-usage.ts';
import { observeGc } from './gc-metrics.ts';

/** What the JVM says of a pool without a limit of its own. */
const NO_LIMIT = -1;

/**
 * Adds the meters that dashboards for the JVM and Spring Boot Admin look for, filled from V8: its spaces are
 * the memory pools, its collector is the collector, the threads are those of the process.
 * What has to be observed for them ends when the result is disposed of.
 */
export function addJvmMetrics(metrics: Metrics): Disposable {
  using stack = new DisposableStack();
  if (metrics.meter('jvm.memory.used') !== undefined) return stack.move();
  addMemory(metrics);
  if (metrics.meter('nodejs.gc.duration') === undefined) stack.use(observeGc(metrics));
  const pause = { description: 'Pauses of the garbage collector', rename: { kind: 'action' } };
  metrics.alias('jvm.gc.pause', 'nodejs.gc.duration', { ...pause, add: { cause: 'V8' } });
  addProcessors(metrics);
  if (process.platform === 'linux') addThreads(metrics);
  return stack.move();
}

function addMemory(metrics: Metrics): void {
  const spaces = sharedReading(() => getHeapSpaceStatistics());
  const pool = (area: string, id: string, used: () => number, committed: () => number, max: () => number) => {
    const gauge = (name: string, description: string, read: () => number) =>
      metrics.gauge(name, { unit: 'bytes', description, tags: { area, id } }, read);
    gauge('jvm.memory.used', 'Used memory', used);
    gauge('jvm.memory.committed', 'Memory that is taken from the system', committed);
    gauge('jvm.memory.max', 'What it cannot grow beyond; -1 without a limit of its own', max);
  };
  for (const [i, { space_name: id }] of getHeapSpaceStatistics().entries()) {
    // The limit is that of the heap as a whole; what grows is mostly the old space.
    const max = () => (id === 'old_space' ? getHeapStatistics().heap_size_limit : NO_LIMIT);
    pool(
      'heap',
      id,
      () => spaces()[i]?.space_used_size ?? 0,
      () => spaces()[i]?.space_size ?? 0,
      max,
    );
  }
  const external = () => process.memoryUsage().external;
  pool('nonheap', 'external', external, external, () => NO_LIMIT);
}

function addProcessors(metrics: Metrics): void {
  const count = availableParallelism();
  const gauge = (name: string, description: string, read: () => number) =>
    metrics.gauge(name, { description }, read);
  gauge('system.cpu.count', 'Processors that the process may use', () => count);
  gauge('system.cpu.usage', 'How busy the machine is, from 0 to 1', usage(systemWork));
  gauge(
    'process.cpu.usage',
    'How busy the process keeps its processors, from 0 to 1',
    usage(() => processWork(count)),
  );
}

function addThreads(metrics: Metrics): void {
  let peak = 0;
  const live = sharedReading(() => {
    const threads = Number(/^Threads:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]);
    peak = Math.max(peak, threads);
    return threads;
  });
  const gauge = (name: string, description: string, read: () => number) =>
    metrics.gauge(name, { unit: 'threads', description }, read);
  gauge('jvm.threads.live', 'Threads of the process', live);
  gauge('jvm.threads.daemon', 'Threads beside the main one, which end with it', () => live() - 1);
  gauge('jvm.threads.peak', 'The most threads that were seen when somebody looked', () => {
    live();
    return peak;
  });
}
