import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { withLimits } from './limits.ts';
import type { CommandOptions, CommandResult } from './run-command.ts';
import { waitFor } from './wait-for.ts';

const ROOT = join(import.meta.dirname, '../..');
/** The program from the sources, whatever `MAIN` is. */
export const SOURCE_MAIN = join(ROOT, 'bin/portico.js');
/** The program that tests start: `npm test` names the bundle of the build, which starts in half the time. */
export const MAIN = process.env.PORTICO_MAIN ?? SOURCE_MAIN;

export interface ProcessOptions {
  /** The working folder: where the database and the configuration module are. */
  readonly cwd: string;
  /** The path of that folder for the test, if `wrapper` shows it to the process alone. */
  readonly outside?: string;
  readonly args?: readonly string[];
  /** Settings by their environment names, limits by names like these. Undefined unsets what all test processes have. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Words put before `node`, such as a tracer and its options. */
  readonly wrapper?: readonly string[];
  /** The program's script; default the one of this folder. */
  readonly main?: string;
  /** The Node that runs it; default that of the test. */
  readonly node?: string;
  /** Node's own options. */
  readonly nodeArgs?: readonly string[];
}

/** A `portico` process of its own, with every port picked by the system unless `env` names one. */
export interface PorticoProcess extends AsyncDisposable {
  readonly child: ChildProcess;
  readonly stdout: string;
  readonly stderr: string;
  /** Base URLs by door, known once it is ready. */
  readonly urls: Readonly<Record<string, string>>;
  /** Log entries so far. */
  logs(): readonly Record<string, unknown>[];
  /** Waits until all doors listen. */
  ready(): Promise<void>;
  /** The exit code, or the name of the signal that ended it. */
  exited(): Promise<number | string>;
}

export function startPortico({
  cwd,
  outside = cwd,
  args = ['serve'],
  env = {},
  wrapper = [],
  main = MAIN,
  node = process.execPath,
  nodeArgs = [],
}: ProcessOptions): PorticoProcess {
  const [command = '', ...words] = [...wrapper, node, ...nodeArgs, main, ...args];
  const child = spawn(command, words, {
    cwd,
    env: {
      ...CHILD_ENVIRONMENT,
      GRAPHQL_PORT: '0',
      REST_PORT: '0',
      MANAGEMENT_PORT: '0',
      PORT: '0',
      SHUTDOWN_PRE_STOP_DELAY: '0',
      ...withLimits(env, outside, cwd),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  let urls: Record<string, string> = {};
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const exit = once(child, 'close') as Promise<[number | null, string | null]>;
  exit.catch(() => {});
  const logs = () =>
    stdout
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  return {
    child,
    get stdout() {
      return stdout;
    },
    get stderr() {
      return stderr;
    },
    get urls() {
      return urls;
    },
    logs,
    async ready() {
      const entry = await waitFor('the process to be ready', () => {
        const end = child.exitCode ?? child.signalCode;
        if (end !== null) throw new Error(`ended with ${end}: ${stderr}`);
        return logs().find(({ msg }) => msg === 'ready');
      }).catch((error: Error) => {
        throw new Error(`${error.message}; it said: ${stderr}${stdout.slice(-2_000)}`, { cause: error });
      });
      urls = Object.fromEntries(
        Object.entries(entry.doors as Record<string, string>).map(([door, url]) => [
          door,
          new URL(url).origin,
        ]),
      );
    },
    async exited() {
      const [code, signal] = await exit;
      return code ?? signal ?? 'unknown';
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
      await exit;
    },
  };
}

/**
 * What every process that a test starts gets of the test's own environment, and nothing else: where programs are, and
 * where compiled code is kept.
 */
export const CHILD_ENVIRONMENT: NodeJS.ProcessEnv = {
  PATH: process.env.PATH,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
};

/** Runs a `portico` command to its end, in a process of its own. */
export async function runPortico(
  args: readonly string[],
  { cwd, env = {}, input = '' }: CommandOptions,
): Promise<CommandResult> {
  const child = spawn(process.execPath, [MAIN, ...args], {
    cwd,
    env: { ...CHILD_ENVIRONMENT, ...withLimits(env, cwd) },
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  // A command that reads nothing may be gone before it is written to.
  child.stdin.on('error', () => {}).end(input);
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout, stderr };
}
