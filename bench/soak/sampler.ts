import { readdirSync, readFileSync } from 'node:fs';
import type { Running } from './installation.ts';
import type { Usage } from './samples.ts';

/** Current resource use of the processes, on Linux; without those that have just ended. */
export function usagesOf(running: readonly Running[]): readonly Usage[] {
  return running.flatMap(({ name, portico }) => {
    try {
      const status = readFileSync(`/proc/${portico.child.pid}/status`, 'utf8');
      const [, kibibytes] = /^VmRSS:\s+(\d+) kB/m.exec(status) ?? [];
      if (kibibytes === undefined) return [];
      const descriptors = readdirSync(`/proc/${portico.child.pid}/fd`).length;
      return [{ process: name, memoryMiB: Number(kibibytes) / 1_024, descriptors }];
    } catch {
      return [];
    }
  });
}
