import type { Metrics } from './metrics.ts';

/** The gauges of the process itself. */
export function addProcessMetrics(metrics: Metrics): void {
  const gauge = (name: string, unit: string, description: string, read: () => number) =>
    metrics.gauge(name, { unit, description }, read);
  gauge('process.uptime', 'seconds', 'How long the process runs', () => process.uptime());
  gauge('process.memory.resident', 'bytes', 'Resident memory', () => process.memoryUsage.rss());
  gauge('process.memory.heap.used', 'bytes', 'Used JavaScript heap', () => process.memoryUsage().heapUsed);
  gauge('process.cpu.time', 'seconds', 'User and system CPU time', () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000_000;
  });
}
