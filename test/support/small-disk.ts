import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from './temporary-folder.ts';

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
