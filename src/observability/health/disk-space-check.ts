import { statfs } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { HealthIndicator, HealthResult } from './health.ts';

interface DiskSpaceOptions {
  /** A folder on the disk. */
  readonly path: string;
  /** DOWN below this free space, in bytes. */
  readonly thresholdBytes: number;
}

/** The free space of a disk, as Actuator shows it. A missing folder is DOWN. */
export function diskSpaceCheck({ path, thresholdBytes: threshold }: DiskSpaceOptions): HealthIndicator {
  const absolute = resolve(path);

  function result(total: number, free: number, exists: boolean): HealthResult {
    const status = exists && free >= threshold ? 'UP' : 'DOWN';
    return { status, details: { total, free, threshold, path: absolute, exists } };
  }

  return {
    name: 'diskSpace',
    check: () =>
      statfs(absolute).then(
        // `bavail` leaves out what only root may use.
        ({ bsize, blocks, bavail }) => result(bsize * blocks, bsize * bavail, true),
        (error: NodeJS.ErrnoException) => {
          if (error.code !== 'ENOENT') throw error;
          return result(0, 0, false);
        },
      ),
  };
}
