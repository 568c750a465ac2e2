import { execFileSync } from 'node:child_process';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { PostgresServer } from '../../test/support/postgres.ts';
import type { Random } from '../../test/support/random.ts';
import type { Installation } from './installation.ts';

export interface FaultContext {
  readonly installation: Installation;
  readonly random: Random;
  /** The server, if the run has started its own. */
  readonly server: PostgresServer | undefined;
}

export interface Fault {
  readonly name: string;
  /** Whether it ends a process: measurements of one process over time need other faults. */
  readonly endsProcess?: boolean;
  /** Resolves once the cause is removed. */
  run(context: FaultContext): Promise<void>;
}

const SLOW_READERS = 20;
const LONG_LIST = 'GET /users HTTP/1.1\r\nHost: localhost\r\n\r\n';

/** With several processes, the first one is never ended. */
const victim = ({ installation }: FaultContext) => installation.running.length - 1;

const COMMON: readonly Fault[] = [
  { name: 'process killed', endsProcess: true, run: (on) => on.installation.replace(victim(on), 'SIGKILL') },
  {
    name: 'process stopped by SIGTERM',
    endsProcess: true,
    run: (on) => on.installation.replace(victim(on), 'SIGTERM'),
  },
  {
    name: 'process frozen',
    async run({ installation, random }) {
      const child = random.pick(installation.running).portico.child;
      child.kill('SIGSTOP');
      await delay(500 + random.below(2_000));
      child.kill('SIGCONT');
    },
  },
  {
    name: 'clients that do not read',
    async run({ installation, random }) {
      const { port, hostname } = new URL(random.pick(installation.running).portico.urls.rest ?? '');
      const sockets = Array.from({ length: SLOW_READERS }, () => {
        const socket = connect(Number(port), hostname).on('error', () => {});
        socket.pause();
        socket.write(LONG_LIST.repeat(5));
        return socket;
      });
      await delay(2_000 + random.below(2_000));
      for (const socket of sockets) socket.destroy();
    },
  },
];

/** For a while, the process may write to no file, as on a full disk. */
const NO_WRITES: Fault = {
  name: 'writes to files fail',
  async run({ installation, random }) {
    const pid = String(installation.running[0]?.portico.child.pid);
    const limit = (size: string) => execFileSync('prlimit', ['--pid', pid, `--fsize=${size}:unlimited`]);
    limit('0');
    await delay(500 + random.below(2_000));
    try {
      limit('unlimited');
    } catch {
      // It has ended meanwhile.
    }
  },
};

const OF_POSTGRES: readonly Fault[] = [
  { name: 'PostgreSQL restarted', run: ({ server }) => restart(server, 'fast') },
  { name: 'PostgreSQL crashed', run: ({ server }) => restart(server, 'immediate') },
  {
    name: 'PostgreSQL frozen',
    async run({ server, random }) {
      server?.freeze(true);
      await delay(500 + random.below(2_000));
      server?.freeze(false);
    },
  },
];

async function restart(server: PostgresServer | undefined, mode: 'fast' | 'immediate'): Promise<void> {
  await server?.stop(mode);
  await server?.start();
}

/** The faults that this machine can inject. */
export function faultsFor(engine: 'sqlite' | 'postgres', hasOwnServer: boolean): readonly Fault[] {
  if (engine === 'postgres') return [...COMMON, ...(hasOwnServer ? OF_POSTGRES : [])];
  try {
    execFileSync('prlimit', ['--version'], { stdio: 'ignore' });
    return [...COMMON, NO_WRITES];
  } catch {
    return COMMON;
  }
}

/** The next fault of a run after `done` of `total` faults; all faults occur equally often. */
export function nextFault(
  faults: readonly Fault[],
  engine: 'sqlite' | 'postgres',
  done: number,
  total: number,
): Fault | undefined {
  // On SQLite the only process must live long enough for a verdict on its memory.
  const mayEnd = engine === 'postgres' || done < total / 3;
  const possible = faults.filter(({ endsProcess = false }) => mayEnd || !endsProcess);
  return possible[done % possible.length];
}
