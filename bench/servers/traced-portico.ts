import { readFileSync } from 'node:fs';
import { onCores } from '../machine/cores.ts';
import type { Workbench } from '../workbench.ts';
import { MAIN } from './portico.ts';
import type { Server } from './server.ts';

/** Portico's REST door under strace, which holds each sync for so many milliseconds, or none, and lets all else run. */
export async function startTracedPortico(bench: Workbench, held: number | undefined): Promise<Server> {
  const inject = held === undefined ? [] : ['-e', `inject=fsync,fdatasync:delay_enter=${held}ms`];
  const server = await bench.start({
    // The tracer has the core of the load, so that it takes none of the server's time.
    onAllCores: true,
    command: [
      ...onCores(bench.cores.load),
      ...['strace', '-f', '--seccomp-bpf', '-o', '/dev/null', '-e', 'trace=fsync,fdatasync', ...inject],
      ...onCores(bench.cores.server),
      ...[bench.node, MAIN, 'serve'],
    ],
    env: (port) => ({ INTERFACES: 'rest', REST_PORT: String(port), SHUTDOWN_LINGER: '0' }),
  });
  const [child = ''] = readFileSync(`/proc/${server.pid}/task/${server.pid}/children`, 'utf8').split(' ');
  const pid = Number(child);
  // A tracer that is killed lets its program run on.
  const kill = (signal: NodeJS.Signals) => {
    try {
      process.kill(pid, signal);
    } catch {
      // It has ended before.
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
