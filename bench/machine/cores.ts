import { execFileSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { hasTool } from './tools.ts';

/** Cores by number, as `taskset` takes them; undefined where binding is not possible or there is one core only. */
export interface Cores {
  readonly server: string | undefined;
  readonly load: string | undefined;
  /** Those that a program has when it is not bound. */
  readonly all: string | undefined;
}

/** Gives servers one core and all else, this process too, another one. */
export function divideCores(): Cores {
  const count = availableParallelism();
  if (count < 2 || !hasTool('taskset', '--version')) {
    return { server: undefined, load: undefined, all: undefined };
  }
  moveTo('1', process.pid);
  return { server: '0', load: '1', all: `0-${count - 1}` };
}

/** The words that bind a command, or none. */
export function onCores(cores: string | undefined): readonly string[] {
  return cores === undefined ? [] : ['taskset', '-c', cores];
}

/** Binds a process that runs, and what it starts from now on. */
export function moveTo(cores: string | undefined, pid: number): void {
  if (cores !== undefined)
    execFileSync('taskset', ['-a', '-c', '-p', cores, String(pid)], { stdio: 'ignore' });
}
