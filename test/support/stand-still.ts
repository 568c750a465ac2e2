import { readdirSync, readFileSync } from 'node:fs';

const cell = new Int32Array(new SharedArrayBuffer(4));

/**
 * Stops a process; returns once it stands still. On a busy machine its threads run for some time after the signal, and may
 * take a lock meanwhile. One that has ended already stands still, too.
 */
export function standStill(pid: number): void {
  try {
    process.kill(pid, 'SIGSTOP');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return;
    throw error;
  }
  while (!hasStopped(pid)) Atomics.wait(cell, 0, 0, 1);
}

/** Whether all threads of a process are stopped (proc_pid_stat(5)), as far as the system tells. */
function hasStopped(pid: number): boolean {
  try {
    return readdirSync(`/proc/${pid}/task`).every((thread) => {
      const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'latin1');
      // The name of the program, in parentheses, may hold anything.
      return /^ [TtZX]/.test(stat.slice(stat.lastIndexOf(')') + 1));
    });
  } catch {
    // The process has ended, or there is no /proc.
    return true;
  }
}
