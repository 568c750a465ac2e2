import { readdirSync, readFileSync } from 'node:fs';
import type { Metrics } from '../metrics/metrics.ts';
import { sharedReading } from '../metrics/shared-reading.ts';

const MICROSECONDS = 1_000_000;

/**
 * The meters of the process itself. They are named so that Prometheus sees them under the names which its
 * clients give them in every language: process_cpu_seconds_total, process_resident_memory_bytes and so on.
 */
export function addProcessMetrics(metrics: Metrics): void {
  const gauge = (name: string, unit: string | undefined, description: string, read: () => number) =>
    metrics.gauge(name, { unit, description }, read);
  gauge('process.uptime', 'seconds', 'How long the process runs', () => process.uptime());
  // Known to the millisecond and always the same: a start time that moves would look like a restart.
  const startTime = performance.timeOrigin / 1_000;
  gauge('process.start.time', 'seconds', 'When the process started, since the epoch', () => startTime);
  gauge('process.resident.memory', 'bytes', 'Resident memory', () => process.memoryUsage.rss());

  const cpu = sharedReading(() => process.cpuUsage());
  const cpuTime = (name: string, description: string, read: () => number) =>
    metrics.counter(name, { unit: 'seconds', description }, () => read() / MICROSECONDS);
  cpuTime('process.cpu', 'CPU time of the program and of the system for it', () => cpu().user + cpu().system);
  cpuTime('process.cpu.user', 'CPU time of the program', () => cpu().user);
  cpuTime('process.cpu.system', 'CPU time of the system for the program', () => cpu().system);

  if (process.platform !== 'linux') return;
  const status = sharedReading(() => readFileSync('/proc/self/status', 'utf8'));
  const kibibytes = (key: string) =>
    Number(new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(status())?.[1]) * 1_024;
  gauge('process.virtual.memory', 'bytes', 'Virtual memory', () => kibibytes('VmSize'));
  gauge('process.heap', 'bytes', 'Memory of the data segment', () => kibibytes('VmData'));
  // One of them is the folder that is being read.
  gauge(
    'process.open.fds',
    undefined,
    'Open file descriptors',
    () => readdirSync('/proc/self/fd').length - 1,
  );
  gauge('process.max.fds', undefined, 'The most file descriptors that may be open', maxFileDescriptors);
}

function maxFileDescriptors(): number {
  const [, soft = ''] = /^Max open files\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  return soft === 'unlimited' ? Infinity : Number(soft);
}
