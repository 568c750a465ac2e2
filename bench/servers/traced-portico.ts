import { readFileSync } from 'node:fs';
import { onCores } from '../machine/cores.ts';
import type { Workbench } from '../workbench.ts';
import { MAIN } from './portico.ts';
import type { Server } from './server.ts';

/** Starts Portico's REST door under strace, which only delays each sync by this many milliseconds. */
export async function startTracedPortico(bench: Workbench, delayed: number | undefined): Promise<Server> {
  const inject = delayed === undefined ? [] : ['-e', `inject=fsync,fdatasync:delay_enter=${delayed}ms`];
  const server = await bench.start({
    // The tracer runs on the load's core, so that it takes no time from the server's core.
    onAllCores: true,
    command: [
      ...onCores(bench.cores.load),
      ...['strace', '-f', '--seccomp-bpf', '-o', '/dev/null', '-e', 'trace=fsync,fdatasync', ...inject],
      ...onCores(bench.cores.server),
      ...[bench.node, MAIN, 'serve'],
    ],
    env: (port) => ({ INTERFACES: 'rest', REST_PORT: String(port), SHUTDOWN_PRE_STOP_DELAY: '0' }),
  });
  const [child = ''] = readFileSync(`/proc/${server.pid}/task/${server.pid}/children`, 'utf8').split(' ');
  const pid = Number(child);
  // A traced program outlives its tracer, so both must be killed.
  const kill = (signal: NodeJS.Signals) => {
    try {
      process.kill(pid, signal);
    } catch {
      // It has already exited.
    }
  };
  const killAtExit = () => kill('SIGKILL');
  process.prependOnceListener('exit', killAtExit);
  bench.use({
    [Symbol.dispose]() {
      process.off('exit', killAtExit);
      kill('SIGTERM');
    },
  });
  return { ...server, pid };
}
