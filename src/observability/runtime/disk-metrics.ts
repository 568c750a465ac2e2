import { type StatsFs, statfsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import type { Metrics } from '../metrics/metrics.ts';

/** A reading is used for so long, in milliseconds. */
const MAX_AGE = 5_000;

/**
 * Adds the gauges of the disk that a folder is on. They show the last answer of the system, which is asked in the
 * background and never twice at once: a disk that hangs holds up no scrape.
 */
export function addDiskMetrics(metrics: Metrics, folder: string): void {
  let last: StatsFs | undefined;
  try {
    last = statfsSync(folder);
  } catch {
    // A missing folder is the health check's to tell.
  }
  /** Infinity while the system is asked. */
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
  // What only root may use is left out, as in the health check.
  gauge('disk.free', 'Free space of the disk with the data', ({ bavail }) => bavail);
  gauge('disk.total', 'Size of the disk with the data', ({ blocks }) => blocks);
}
