import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { getHeapSpaceStatistics, getHeapStatistics } from 'node:v8';
import type { Metrics } from '../metrics/metrics.ts';
import { sharedReading } from '../metrics/shared-reading.ts';
import { processCpuTime, systemCpuTime, usage } from './cpu-usage.ts';
import { observeGcAsJvm } from './gc-metrics.ts';

/** The JVM's maximum of a pool without a limit. */
const NO_LIMIT = -1;

/**
 * Adds the meters that JVM dashboards and Spring Boot Admin expect, filled from V8: its heap spaces are the memory pools,
 * and the threads are those of the process. Disposing of the result stops the observation of the garbage collector.
 */
export function addJvmMetrics(metrics: Metrics): Disposable {
  using stack = new DisposableStack();
  if (metrics.meter('jvm.memory.used') !== undefined) return stack.move();
  addMemory(metrics);
  stack.use(observeGcAsJvm(metrics));
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
    gauge('jvm.memory.committed', 'Memory that is allocated from the system', committed);
    gauge('jvm.memory.max', 'Maximum memory; -1 without a limit', max);
  };
  for (const [i, { space_name: id }] of getHeapSpaceStatistics().entries()) {
    // V8 limits only the whole heap; mostly the old space grows.
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
  gauge('system.cpu.count', 'Processors available to the process', () => count);
  gauge('system.cpu.usage', 'CPU usage of the machine, from 0 to 1', usage(systemCpuTime));
  gauge(
    'process.cpu.usage',
    'CPU usage of the process, from 0 to 1, relative to its processors',
    usage(() => processCpuTime(count)),
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
  gauge('jvm.threads.daemon', 'Threads of the process without the main thread', () => live() - 1);
  gauge('jvm.threads.peak', 'Maximum number of threads seen by a measurement', () => {
    live();
    return peak;
  });
}
