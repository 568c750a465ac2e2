import { cpus } from 'node:os';

/** What was worked and what could have been, both counted in the same unit from some start on. */
export interface Work {
  readonly busy: number;
  readonly total: number;
}

/** A usage needs some time to be one, in milliseconds. */
const WINDOW = 1_000;

/**
 * The share of the work that could have been done, from 0 to 1: since the last look that is at least a
 * second ago, so that two who look at the same time see the same. `now` is a clock in milliseconds.
 */
export function usage(read: () => Work, now: () => number = () => performance.now()): () => number {
  let last = read();
  let at = now();
  let share = 0;
  return () => {
    if (now() - at < WINDOW) return share;
    const work = read();
    const total = work.total - last.total;
    share = total > 0 ? Math.min(1, Math.max(0, (work.busy - last.busy) / total)) : share;
    last = work;
    at = now();
    return share;
  };
}

/** The CPU time of this process, of that of `count` processors, in microseconds. */
export function processWork(count: number): Work {
  const { user, system } = process.cpuUsage();
  return { busy: user + system, total: performance.now() * 1_000 * count };
}

/** The CPU time of the whole machine, in milliseconds. */
export function systemWork(): Work {
  let total = 0;
  let idle = 0;
  for (const { times } of cpus()) {
    total += times.user + times.nice + times.sys + times.idle + times.irq;
    idle += times.idle;
  }
  return { busy: total - idle, total };
}
