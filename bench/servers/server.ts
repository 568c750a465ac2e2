import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, truncateSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../../test/support/free-port.ts';
import { onCores } from '../machine/cores.ts';

const START_TIMEOUT = 20_000;
const STOP_TIMEOUT = 10_000;

export interface ServerOptions {
  /** The program and its arguments. */
  readonly command: readonly string[];
  /** The environment, from the port to listen on. */
  readonly env: (port: number) => Readonly<Record<string, string>>;
  /** The working folder. */
  readonly folder: string;
  /** The cores to bind it to, in the format of `taskset`. */
  readonly cores: string | undefined;
}

/** A server in a separate process. */
export interface Server extends AsyncDisposable {
  readonly pid: number;
  /** The origin, such as `http://127.0.0.1:4000`. */
  readonly origin: string;
  readonly folder: string;
  /** Time from the start of the process until it accepted a connection, in milliseconds. */
  readonly listeningAfter: number;
  /** Truncates the file of its standard output. */
  trimLog(): void;
  stop(): Promise<void>;
}

/**
 * Starts a server and waits until it accepts connections. Its output goes to a file, like that of a service.
 */
export async function startServer(options: ServerOptions): Promise<Server> {
  const { command, env, folder, cores } = options;
  const port = await freePort();
  const log = join(folder, 'stdout.log');
  const errors = join(folder, 'stderr.log');
  const files = [openSync(log, 'a'), openSync(errors, 'a')];
  const [program = '', ...args] = [...onCores(cores), ...command];
  const begin = performance.now();
  const child = spawn(program, args, {
    cwd: folder,
    env: { PATH: process.env.PATH, NODE_ENV: 'production', ...env(port) },
    stdio: ['ignore', ...files],
  });
  for (const file of files) closeSync(file);
  const exit = once(child, 'exit');
  exit.catch(() => {});
  const kill = () => child.kill('SIGKILL');
  // First, so that the server has ended before its files are removed.
  process.prependOnceListener('exit', kill);
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;

  async function stop(): Promise<void> {
    process.off('exit', kill);
    if (hasEnded()) return;
    child.kill('SIGTERM');
    const timer = setTimeout(kill, STOP_TIMEOUT);
    await exit;
    clearTimeout(timer);
  }

  try {
    while (!(await acceptsConnections(port))) {
      if (hasEnded() || performance.now() - begin > START_TIMEOUT) {
        throw new Error(`${command.join(' ')} did not start: ${readFileSync(errors, 'utf8').slice(-2_000)}`);
      }
      await delay(2);
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    pid: pidOf(child),
    origin: `http://127.0.0.1:${port}`,
    folder,
    listeningAfter: performance.now() - begin,
    trimLog: () => truncateSync(log),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** `taskset` replaces itself with the program, so the pid is the server's. */
function pidOf(child: ChildProcess): number {
  if (child.pid === undefined) throw new Error('a server has no process');
  return child.pid;
}

function acceptsConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}
