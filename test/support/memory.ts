import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** The memory of a process, in megabytes. */
export function residentMegabytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

/** What the memory of a process grows by at most while `work` goes on, in megabytes. */
export async function grownMegabytes(pid: number, work: () => Promise<unknown>): Promise<number> {
  const before = residentMegabytes(pid);
  let highest = before;
  const look = () => {
    highest = Math.max(highest, residentMegabytes(pid));
  };
  const ended = new AbortController();
  const looking = (async () => {
    while (!ended.signal.aborted) {
      look();
      await delay(3);
    }
  })();
  try {
    await work();
    look();
  } finally {
    ended.abort();
    await looking;
  }
  return highest - before;
}
