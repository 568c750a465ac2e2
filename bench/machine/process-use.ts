import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

/**
 * Resident memory of a process in megabytes (2^20 bytes), now and at its peak since it started or
 * `resetPeak`.
 */
export interface MemoryUse {
  readonly now: number;
  readonly peak: number;
}

/** Undefined without /proc. */
export function memoryUse(pid: number): MemoryUse | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const megabytes = (name: string) =>
      Number(new RegExp(`^${name}:\\s*(\\d+)`, 'm').exec(status)?.[1]) / 1024;
    return { now: megabytes('VmRSS'), peak: megabytes('VmHWM') };
  } catch {
    return undefined;
  }
}

/** Resets the peak of a process to its current memory. */
export function resetPeak(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, '5');
  } catch {
    // Without it, the peak since the start is reported.
  }
}

/** Clock ticks per second, the unit of CPU time in /proc. */
const TICKS = ticksPerSecond();

/** CPU time used by a process and its threads, in seconds; NaN without /proc. */
export function cpuTime(pid: number): number {
  try {
    const [, after = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ');
    const fields = after.split(' ');
    return (Number(fields[11]) + Number(fields[12])) / TICKS;
  } catch {
    return Number.NaN;
  }
}

/** CPU time used by a process and its children, of which some may have ended, in seconds; NaN without /proc. */
export function familyCpuTime(pid: number): number {
  try {
    const [, after = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ');
    const fields = after.split(' ').map(Number);
    const ended = ((fields[13] ?? 0) + (fields[14] ?? 0)) / TICKS;
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
    // A child that ends meanwhile is counted with those that have ended next time.
    const running = children.map((child) => cpuTime(Number(child))).filter(Number.isFinite);
    return cpuTime(pid) + ended + running.reduce((sum, time) => sum + time, 0);
  } catch {
    return Number.NaN;
  }
}

function ticksPerSecond(): number {
  try {
    return Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
  } catch {
    return 100;
  }
}

/** Time that all programs together have used on a core, in seconds; NaN without /proc or a core. */
export function coreTime(core: string | undefined): number {
  if (core === undefined) return Number.NaN;
  try {
    const line = new RegExp(`^cpu${core} (.*)$`, 'm').exec(readFileSync('/proc/stat', 'utf8'))?.[1];
    const [user = 0, nice = 0, system = 0, , , , , steal = 0] = line?.split(' ').map(Number) ?? [];
    return (user + nice + system + steal) / TICKS;
  } catch {
    return Number.NaN;
  }
}
