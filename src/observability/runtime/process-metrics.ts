import { readdirSync, readFileSync } from 'node:fs';
import type { Metrics } from '../metrics/metrics.ts';
import { sharedReading } from '../metrics/shared-reading.ts';

const MICROSECONDS = 1_000_000;

/**
 * Adds the meters of the process. In Prometheus they have the standard names of its client libraries:
 * process_cpu_seconds_total, process_resident_memory_bytes and so on.
 */
export function addProcessMetrics(metrics: Metrics): void {
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
  // One of them is the directory being read.
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
