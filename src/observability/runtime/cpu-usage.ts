import { cpus } from 'node:os';

/** Cumulative busy time and available time, in the same unit. */
export interface CpuTime {
  readonly busy: number;
  readonly total: number;
}

/** Minimum length of a measurement in milliseconds. */
const WINDOW = 1_000;

/**
 * A gauge of CPU usage from 0 to 1, since the last measurement at least a second ago, so that concurrent readers see the
 * same value. `now` is a clock in milliseconds.
 */
export function usage(read: () => CpuTime, now: () => number = () => performance.now()): () => number {
  let last = read();
  let at = now();
  let share = 0;
  return () => {
    if (now() - at < WINDOW) return share;
    const time = read();
    const total = time.total - last.total;
    share = total > 0 ? Math.min(1, Math.max(0, (time.busy - last.busy) / total)) : share;
    last = time;
    at = now();
    return share;
  };
}

/** The CPU time of this process and the time of `count` processors, in microseconds. */
export function processCpuTime(count: number): CpuTime {
  const { user, system } = process.cpuUsage();
  return { busy: user + system, total: performance.now() * 1_000 * count };
}

/** The CPU time of the machine, in milliseconds. */
export function systemCpuTime(): CpuTime {
  let total = 0;
  let idle = 0;
  for (const { times } of cpus()) {
    total += times.user + times.nice + times.sys + times.idle + times.irq;
    idle += times.idle;
  }
  return { busy: total - idle, total };
}
