import { readdirSync, readFileSync } from 'node:fs';
import type { Running } from './installation.ts';
import type { Usage } from './samples.ts';

/** What the processes use now; on Linux. Those that have just ended are left out. */
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
