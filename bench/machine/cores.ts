import { execFileSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { hasTool } from './tools.ts';

/** The core that a process is bound to; undefined where binding is not possible or there is one core only. */
export interface Cores {
  readonly server: number | undefined;
  readonly load: number | undefined;
}

/** Gives servers one core and all else, this process too, another one. */
export function divideCores(): Cores {
  if (availableParallelism() < 2 || !hasTool('taskset', '--version')) {
    return { server: undefined, load: undefined };
  }
  execFileSync('taskset', ['-a', '-c', '-p', '1', String(process.pid)], { stdio: 'ignore' });
  return { server: 0, load: 1 };
}

/** The words that bind a command to a core, or none. */
export function onCore(core: number | undefined): readonly string[] {
  return core === undefined ? [] : ['taskset', '-c', String(core)];
}

/** The words that give a command all cores again, which a child of a bound process has not. */
export function onAllCores(cores: Cores): readonly string[] {
  return cores.server === undefined ? [] : ['taskset', '-c', '0-1'];
}
