import { execFileSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { hasTool } from './tools.ts';

/**
 * Lists of cores in the format of `taskset`; undefined if binding is impossible or there is only one core.
 */
export interface Cores {
  readonly server: string | undefined;
  readonly load: string | undefined;
  /** The cores of an unbound program. */
  readonly all: string | undefined;
}

/** Reserves one core for the servers, and binds this process to another; load generators inherit that. */
export function divideCores(): Cores {
  const count = availableParallelism();
  if (count < 2 || !hasTool('taskset', '--version')) {
    return { server: undefined, load: undefined, all: undefined };
  }
  moveTo('1', process.pid);
  return { server: '0', load: '1', all: `0-${count - 1}` };
}

/** The command prefix that binds a program to cores; empty for undefined. */
export function onCores(cores: string | undefined): readonly string[] {
  return cores === undefined ? [] : ['taskset', '-c', cores];
}

/** Binds a running process, and every process that it starts from now on, to cores. */
export function moveTo(cores: string | undefined, pid: number): void {
  if (cores !== undefined)
    execFileSync('taskset', ['-a', '-c', '-p', cores, String(pid)], { stdio: 'ignore' });
}
