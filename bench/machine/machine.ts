import { fdatasyncSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { cpus, release, tmpdir, totalmem, type } from 'node:os';
import { join } from 'node:path';
import { median } from '../measure/statistics.ts';

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  /** In gigabytes (2^30 bytes). */
  readonly memory: number;
  readonly system: string;
  /** Median time of a 4 KiB write and its sync in the folder of the databases, in milliseconds. */
  readonly sync: number;
}

export function describeMachine(): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memory: totalmem() / 2 ** 30,
    system: `${type()} ${release()}${distribution()}`,
    sync: syncTime(),
  };
}

function distribution(): string {
  try {
    return `, ${/^PRETTY_NAME="(.*)"$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1]}`;
  } catch {
    return '';
  }
}

function syncTime(): number {
  const folder = mkdtempSync(join(tmpdir(), 'portico-bench-'));
  try {
    const file = openSync(join(folder, 'sync'), 'w');
    const page = Buffer.alloc(4_096, 1);
    const times = Array.from({ length: 100 }, (_, i) => {
      const begin = performance.now();
      writeSync(file, page, 0, page.length, i * page.length);
      fdatasyncSync(file);
      return performance.now() - begin;
    });
    return median(times);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
