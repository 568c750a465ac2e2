import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from './temporary-folder.ts';
import { waitFor } from './wait-for.ts';

/** Why a test that traces cannot run here, or false. */
export function withoutStrace(): string | false {
  try {
    execFileSync('strace', ['-V'], { stdio: 'ignore' });
    return false;
  } catch {
    return 'needs strace (Debian package strace)';
  }
}

/** The process that a tracer has started. */
export function tracedProcess(tracer: number): number {
  const [pid] = readFileSync(`/proc/${tracer}/task/${tracer}/children`, 'utf8').trim().split(' ');
  if (!pid) throw new Error(`process ${tracer} has no child`);
  return Number(pid);
}

/** Attaches a tracer to a running process until it is disposed of: its words say which calls it changes, and how. */
export async function attachStrace(pid: number, words: readonly string[]): Promise<AsyncDisposable> {
  const tracer = spawn('strace', ['-f', '-p', String(pid), ...words], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  tracer.stderr.setEncoding('utf8').on('data', (text: string) => {
    // Only the beginning is looked at; a trace can be long.
    if (said.length < 10_000) said += text;
  });
  const ended = once(tracer, 'close');
  await waitFor('the tracer to attach', () => {
    if (tracer.exitCode !== null) throw new Error(`strace ended: ${said}`);
    return said.includes('attached');
  });
  return {
    async [Symbol.asyncDispose]() {
      tracer.kill('SIGINT');
      await ended;
    },
  };
}

const NAMESPACE = ['--map-root-user', '--mount'];

/** A disk of its own, in memory and as small as a test wants it. It is gone when it is disposed of. */
export interface SmallDisk extends AsyncDisposable {
  /** Where it is for commands that run in it. */
  readonly path: string;
  /** Where it is for everybody else. */
  readonly outside: string;
  /** Words put before a command so that it sees the disk. */
  readonly wrapper: readonly string[];
}

/** Why there can be no small disk here, or false. */
export function withoutSmallDisk(): string | false {
  try {
    execFileSync('unshare', [...NAMESPACE, 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt'], { stdio: 'ignore' });
    return false;
  } catch {
    return 'needs Linux user namespaces (unshare --map-root-user --mount)';
  }
}

/** Makes a disk of `size` bytes. It is mounted in a namespace of its own, so that nothing of it can be left behind. */
export async function openSmallDisk(size: number): Promise<SmallDisk> {
  await using cleanup = new AsyncDisposableStack();
  const { path } = cleanup.use(await temporaryFolder());
  const script = `mount -t tmpfs -o size=${size} tmpfs "$0" && echo mounted && exec cat`;
  const keeper = spawn('unshare', [...NAMESPACE, 'sh', '-c', script, path], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  cleanup.defer(async () => {
    keeper.stdin.end();
    if (keeper.exitCode === null) await once(keeper, 'close');
  });
  await once(keeper.stdout, 'data');
  const rest = cleanup.move();
  return {
    path,
    outside: `/proc/${keeper.pid}/root${path}`,
    wrapper: ['nsenter', '--target', String(keeper.pid), '--user', '--preserve-credentials', '--mount'],
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  };
}

/** Takes all the room that is left; resolves to the file that has it. */
export async function fillDisk({ outside }: SmallDisk): Promise<string> {
  const file = join(outside, 'filler');
  for (let size = 2 ** 19; size >= 512; size /= 2) {
    try {
      for (;;) await appendFile(file, Buffer.alloc(size));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    }
  }
  return file;
}

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
