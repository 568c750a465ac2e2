import { execFileSync } from 'node:child_process';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { PostgresServer } from '../../test/support/postgres.ts';
import type { Random } from '../../test/support/random.ts';
import type { Installation } from './installation.ts';

export interface FaultContext {
  readonly installation: Installation;
  readonly random: Random;
  /** The server, if the run has one of its own. */
  readonly server: PostgresServer | undefined;
}

export interface Fault {
  readonly name: string;
  /** Ends a process: what is measured of one over time needs others. */
  readonly endsProcess?: boolean;
  /** Resolves once the cause is gone. */
  run(context: FaultContext): Promise<void>;
}

const SLOW_READERS = 20;
const LONG_LIST = 'GET /users HTTP/1.1\r\nHost: localhost\r\n\r\n';

/** Where several processes run, the first one is never ended. */
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

/** The process may write to no file any more, as on a full disk, and then it may again. */
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

/** What can be done to a run on this machine. */
export function faultsFor(engine: 'sqlite' | 'postgres', hasOwnServer: boolean): readonly Fault[] {
  if (engine === 'postgres') return [...COMMON, ...(hasOwnServer ? OF_POSTGRES : [])];
  try {
    execFileSync('prlimit', ['--version'], { stdio: 'ignore' });
    return [...COMMON, NO_WRITES];
  } catch {
    return COMMON;
  }
}

/** The faults of a run one after the other, each as often as the others: the next one, so many of `total` having been. */
export function nextFault(
  faults: readonly Fault[],
  engine: 'sqlite' | 'postgres',
  done: number,
  total: number,
): Fault | undefined {
  // SQLite has one process, which has to live for long enough for its memory to be judged.
  const mayEnd = engine === 'postgres' || done < total / 3;
  const possible = faults.filter(({ endsProcess = false }) => mayEnd || !endsProcess);
  return possible[done % possible.length];
}
