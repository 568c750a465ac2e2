import { once } from 'node:events';
import { lstat, rename, unlink } from 'node:fs/promises';
import { connect } from 'node:net';

/** What stands at the path of a Unix socket is no socket, so nothing removes it. */
export class NotASocketError extends Error {
  override readonly name = 'NotASocketError';
  readonly code = 'ENOTSOCK';
}

/**
 * Removes the file of a Unix socket that nobody listens on, which a killed process leaves behind. A socket that somebody
 * listens on stays, and so listening there fails with EADDRINUSE. Rejects with NotASocketError for any other file.
 */
export async function removeStaleSocket(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  if (found === undefined) return;
  if (!found.isSocket()) throw new NotASocketError(`${path} is no socket`);
  if (await answers(path)) return;
  // Another process that starts now may have put its own socket there: what was moved is looked at again.
  const aside = `${path}.${process.pid}`;
  if (!(await moved(path, aside))) return;
  if (await answers(aside)) await rename(aside, path);
  else await unlink(aside);
}

/** Whether somebody accepts connections; also where that cannot be known, as without the permission. */
async function answers(path: string): Promise<boolean> {
  const socket = connect(path);
  try {
    await once(socket, 'connect');
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ECONNREFUSED';
  } finally {
    socket.destroy();
  }
}

/** False when it is gone by now. */
async function moved(from: string, to: string): Promise<boolean> {
  return rename(from, to).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false;
      throw error;
    },
  );
}
