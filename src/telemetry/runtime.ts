import { readdirSync, readFileSync, type StatsFs, statfsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { availableParallelism, cpus } from 'node:os';
import {
  constants,
  type EventLoopUtilization,
  monitorEventLoopDelay,
  type PerformanceNodeEntry,
  PerformanceObserver,
  performance,
} from 'node:perf_hooks';
import { getHeapSpaceStatistics, getHeapStatistics } from 'node:v8';
import type { Timer } from './meters.ts';
import { sharedReading } from './meters.ts';
import type { Metrics } from './metrics.ts';

/** Adds the meters of the process, V8 and the event loop, until the result is disposed of. */
export function observeRuntime(metrics: Metrics): Disposable {
  using stack = new DisposableStack();
  addProcessMetrics(metrics);
  addHeapMetrics(metrics);
  stack.use(observeGc(metrics));
  stack.use(observeEventLoop(metrics));
  return stack.move();
}

/** Cumulative busy time and available time, in the same unit. */
interface CpuTime {
  readonly busy: number;
  readonly total: number;
}

/** Minimum length of a measurement in milliseconds. */
const WINDOW = 1_000;

/**
 * Creates a gauge of CPU usage, from 0 to 1, since the last measurement at least a second ago, so that
 * concurrent readers see the same value. `now` is a clock in milliseconds.
 */
export function usage(read: () => CpuTime, now: () => number = () => performance.now()): () => number {
  let last = read();
  let at = now();
  let share = 0;
  return () => {
    if (now() - at < WINDOW) return share;
    const time = read();
    const total = time.total - last.total;
    share = total > 0 ? Math.min(1, Math.max(0, (time.busy - last.busy) / total)) : share;
    last = time;
    at = now();
    return share;
  };
}

/** The CPU time of this process and the time of `count` processors, in microseconds. */
function processCpuTime(count: number): CpuTime {
  const { user, system } = process.cpuUsage();
  return { busy: user + system, total: performance.now() * 1_000 * count };
}

/** The CPU time of the machine, in milliseconds. */
function systemCpuTime(): CpuTime {
  let total = 0;
  let idle = 0;
  for (const { times } of cpus()) {
    total += times.user + times.nice + times.sys + times.idle + times.irq;
    idle += times.idle;
  }
  return { busy: total - idle, total };
}

/** Maximum age of a reading, in milliseconds. */
const MAX_AGE = 5_000;

/**
 * Adds the gauges of the disk that contains a directory. They show the last reading, which is refreshed in
 * the background, one refresh at a time, so that a hanging disk does not block a scrape.
 */
export function addDiskMetrics(metrics: Metrics, folder: string): void {
  let last: StatsFs | undefined;
  try {
    last = statfsSync(folder);
  } catch {
    // The health check reports a missing directory.
  }
  /** Infinity while a reading is in progress. */
  let readAt = performance.now();
  const refresh = async () => {
    if (performance.now() - readAt < MAX_AGE) return;
    readAt = Infinity;
    last = await statfs(folder).catch(() => undefined);
    readAt = performance.now();
  };

  const gauge = (name: string, description: string, blocks: (answer: StatsFs) => number) =>
    metrics.gauge(name, { unit: 'bytes', description }, () => {
      void refresh();
      return last === undefined ? Number.NaN : last.bsize * blocks(last);
    });
  // Excludes blocks reserved for root, like the health check.
  gauge('disk.free', 'Free space of the disk with the data', ({ bavail }) => bavail);
  gauge('disk.total', 'Size of the disk with the data', ({ blocks }) => blocks);
}

/**
 * Adds the meters of the event loop, its delay and utilization over the last one to two minutes, until the result is
 * disposed of. Unlike prom-client's meters of the same names they cover a time window, so that several scrapers do not
 * reset each other, and they exclude the sampling interval: an idle loop shows 0.
 */
function observeEventLoop(metrics: Metrics): Disposable {
  const windows = new EventLoopWindows();
  const reading = sharedReading(() => windows.read());
  const delay = (name: string, description: string, key: string) =>
    metrics.gauge(name, { unit: 'seconds', description }, () => (reading().delay[key] ?? Number.NaN) / 1_000);
  delay('nodejs.eventloop.lag', 'Mean delay of the event loop', 'mean');
  delay('nodejs.eventloop.lag.mean', 'Mean delay of the event loop', 'mean');
  delay('nodejs.eventloop.lag.min', 'Minimum delay of the event loop', 'min');
  delay('nodejs.eventloop.lag.max', 'Maximum delay of the event loop', 'max');
  for (const percent of [50, 90, 99]) {
    const description = `${percent}th percentile of the delay of the event loop`;
    delay(`nodejs.eventloop.lag.p${percent}`, description, `p${percent}`);
  }
  const description = 'Utilization of the event loop, from 0 to 1';
  metrics.gauge('nodejs.eventloop.utilization', { description }, () => reading().utilization.window);
  return windows;
}

/** Sampling interval in milliseconds. */
const RESOLUTION = 20;
const PERCENTILES = [50, 90, 99, 99.9];
const NANOSECONDS = 1e6;

interface Window {
  readonly delay: ReturnType<typeof monitorEventLoopDelay>;
  readonly utilization: EventLoopUtilization;
  readonly since: number;
}

/** The measurements of a window. */
interface EventLoopReading {
  /** Length of the window in milliseconds. */
  readonly windowMs: number;
  /** From 0 (idle) to 1. */
  readonly utilization: { readonly sinceStart: number; readonly window: number };
  /** Minimum, mean, maximum and percentiles in milliseconds. */
  readonly delay: Readonly<Record<string, number>>;
}

/**
 * Measures the event loop over the last one to two windows, by default of a minute, with two overlapping
 * windows of which the older one is read. A measurement since the start would hide a bad minute. Disposing of
 * it stops the measurement.
 */
export class EventLoopWindows implements Disposable {
  readonly #timer: NodeJS.Timeout;
  #older = open();
  #newer = this.#older;

  constructor(windowMs = 60_000) {
    this.#timer = setInterval(() => this.#rotate(), windowMs).unref();
  }

  /** The p99 delay of the older window, in milliseconds; undefined in the first window, when the process loads. */
  get p99(): number | undefined {
    return this.#older === this.#newer ? undefined : delayMs(this.#older.delay.percentile(99));
  }

  /** The measurements of the older window. */
  read(): EventLoopReading {
    const { delay, utilization, since } = this.#older;
    const total = performance.eventLoopUtilization();
    const percentiles = PERCENTILES.map((percentile) => [
      `p${String(percentile).replace('.', '')}`,
      delayMs(delay.percentile(percentile)),
    ]);
    return {
      windowMs: Math.round(performance.now() - since),
      utilization: {
        sinceStart: round(total.utilization),
        window: round(performance.eventLoopUtilization(total, utilization).utilization),
      },
      delay: {
        min: delayMs(delay.min),
        mean: delay.count === 0 ? 0 : delayMs(delay.mean),
        max: delayMs(delay.max),
        ...Object.fromEntries(percentiles),
      },
    };
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#older.delay.disable();
    this.#newer.delay.disable();
  }

  #rotate(): void {
    if (this.#older !== this.#newer) this.#older.delay.disable();
    this.#older = this.#newer;
    this.#newer = open();
  }
}

function open(): Window {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION });
  delay.enable();
  return { delay, utilization: performance.eventLoopUtilization(), since: performance.now() };
}

/** Subtracts the sampling interval, because the histogram contains the time between two samples. */
function delayMs(nanoseconds: number): number {
  const milliseconds = nanoseconds / NANOSECONDS - RESOLUTION;
  // The minimum of an empty histogram is huge.
  return milliseconds > 0 && milliseconds < 1e9 ? round(milliseconds) : 0;
}

function round(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}

/** Buckets in seconds, as in prom-client. */
const BUCKETS = [0.001, 0.01, 0.1, 1, 2, 5];

const KINDS = {
  [constants.NODE_PERFORMANCE_GC_MINOR]: 'minor',
  [constants.NODE_PERFORMANCE_GC_MAJOR]: 'major',
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: 'incremental',
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: 'weakcb',
};

/** Times the pauses of the garbage collector by kind, until the result is disposed of. */
function observeGc(metrics: Metrics): Disposable {
  const timer = metrics.timer('nodejs.gc.duration', {
    description: 'Pauses of the garbage collector by kind: minor, major, incremental or weakcb',
    tags: ['kind'],
    buckets: BUCKETS,
  });
  return timePauses((kind) => timer.with('kind', kind));
}

/** Like `observeGc`, with the name and the tags of the JVM's meter. */
function observeGcAsJvm(metrics: Metrics): Disposable {
  const timer = metrics.timer('jvm.gc.pause', {
    description: 'Pauses of the garbage collector',
    tags: ['action', 'cause'],
    buckets: BUCKETS,
  });
  return timePauses((kind) => timer.with('action', kind, 'cause', 'V8'));
}

function timePauses(timerOf: (kind: string) => Timer): Disposable {
  // All series exist from the start, so that the first pause shows as an increase.
  const series = new Map(Object.entries(KINDS).map(([number, kind]) => [Number(number), timerOf(kind)]));
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { kind } = (entry as PerformanceNodeEntry).detail as { readonly kind: number };
      series.get(kind)?.record(entry.duration / 1_000);
    }
  });
  observer.observe({ entryTypes: ['gc'] });
  return { [Symbol.dispose]: () => observer.disconnect() };
}

/** Adds the meters of V8's heap and its spaces, and the Node version, under the names of Node dashboards. */
function addHeapMetrics(metrics: Metrics): void {
  const bytes = (name: string, description: string, read: () => number) =>
    metrics.gauge(name, { unit: 'bytes', description }, read);
  const heap = sharedReading(() => getHeapStatistics());
  bytes('nodejs.heap.size.total', 'Size of the JavaScript heap', () => heap().total_heap_size);
  bytes('nodejs.heap.size.used', 'Used size of the JavaScript heap', () => heap().used_heap_size);
  bytes('nodejs.heap.size.limit', 'Maximum size of the JavaScript heap', () => heap().heap_size_limit);
  bytes('nodejs.external.memory', 'Memory outside the heap held by JavaScript objects', () => {
    return heap().external_memory;
  });

  const spaces = sharedReading(() => getHeapSpaceStatistics());
  for (const [index, { space_name }] of getHeapSpaceStatistics().entries()) {
    const tags = { space: space_name.replace(/_space$/, '') };
    const ofSpace = (aspect: string, description: string, read: (space: HeapSpace) => number) =>
      metrics.gauge(`nodejs.heap.space.size.${aspect}`, { unit: 'bytes', description, tags }, () => {
        const space = spaces()[index];
        return space === undefined ? Number.NaN : read(space);
      });
    ofSpace('total', 'Size of a heap space', (space) => space.space_size);
    ofSpace('used', 'Used size of a heap space', (space) => space.space_used_size);
    ofSpace('available', 'Available size of a heap space', (space) => space.space_available_size);
  }

  const { version } = process;
  const [major = '', minor = '', patch = ''] = version.slice(1).split('.');
  const tags = { version, major, minor, patch };
  metrics.gauge('nodejs.version.info', { description: 'Version of Node, in the tags', tags }, () => 1);
}

type HeapSpace = ReturnType<typeof getHeapSpaceStatistics>[number];

/** The maximum that the JVM reports for a pool without a limit. */
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
    // V8 limits only the whole heap, and mostly the old space grows.
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

const MICROSECONDS = 1_000_000;

/**
 * Adds the meters of the process. In Prometheus they have the standard names of its client libraries:
 * process_cpu_seconds_total, process_resident_memory_bytes and so on.
 */
function addProcessMetrics(metrics: Metrics): void {
  const gauge = (name: string, unit: string | undefined, description: string, read: () => number) =>
    metrics.gauge(name, { unit, description }, read);
  gauge('process.uptime', 'seconds', 'Uptime of the process', () => process.uptime());
  // Constant: a start time that changes would look like a restart.
  const startTime = performance.timeOrigin / 1_000;
  gauge('process.start.time', 'seconds', 'Start time of the process since the epoch', () => startTime);
  gauge('process.resident.memory', 'bytes', 'Resident memory', () => process.memoryUsage.rss());

  const cpu = sharedReading(() => process.cpuUsage());
  const cpuTime = (name: string, description: string, read: () => number) =>
    metrics.counter(name, { unit: 'seconds', description }, () => read() / MICROSECONDS);
  cpuTime('process.cpu', 'CPU time of the process, user and system', () => cpu().user + cpu().system);
  cpuTime('process.cpu.user', 'User CPU time of the process', () => cpu().user);
  cpuTime('process.cpu.system', 'System CPU time of the process', () => cpu().system);

  if (process.platform !== 'linux') return;
  const status = sharedReading(() => readFileSync('/proc/self/status', 'utf8'));
  const kibibytes = (key: string) =>
    Number(new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(status())?.[1]) * 1_024;
  gauge('process.virtual.memory', 'bytes', 'Virtual memory', () => kibibytes('VmSize'));
  gauge('process.heap', 'bytes', 'Size of the data segment', () => kibibytes('VmData'));
  // One of the entries is the descriptor of this directory.
  gauge(
    'process.open.fds',
    undefined,
    'Open file descriptors',
    () => readdirSync('/proc/self/fd').length - 1,
  );
  gauge('process.max.fds', undefined, 'Maximum number of open file descriptors', maxFileDescriptors);
}

function maxFileDescriptors(): number {
  const [, soft = ''] = /^Max open files\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  return soft === 'unlimited' ? Infinity : Number(soft);
}
