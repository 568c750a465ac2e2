import { accessSync, constants, readFileSync, type Stats, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { serviceFiles } from './service-lock.ts';

/** Why this process cannot write a database at `path`, and what to do; undefined when the file system would let it. */
export function accessProblem(path: string): string | undefined {
  return folderProblem(dirname(path)) ?? fileProblem(path);
}

function folderProblem(folder: string): string | undefined {
  const found = statOf(folder);
  if (found === 'ENOENT') return `there is no folder ${folder}. Create it, or name another path.`;
  if (found === 'EACCES')
    return `${me()} may not enter the folders above ${folder}. Allow that, or name another path.`;
  if (typeof found === 'string' || !found.isDirectory()) return `${folder} is no folder. Name another path.`;
  return undefined;
}

function fileProblem(path: string): string | undefined {
  const found = statOf(path);
  if (typeof found !== 'string' && found.isDirectory()) {
    return `${path} is a folder. Name a file, such as ${join(path, 'portico.db')}.`;
  }
  const files = [path, `${path}-wal`, `${path}-shm`, ...serviceFiles(path)];
  const { R_OK, W_OK, X_OK } = constants;
  for (const file of files) {
    const problem = blame(file, R_OK | W_OK, 'u+rw');
    if (problem !== undefined) return problem;
  }
  return blame(dirname(path), W_OK | X_OK, 'u+rwx');
}

/** Why a file or folder cannot be used in this way; undefined when it can, or is not there. */
function blame(path: string, use: number, mode: string): string | undefined {
  const found = statOf(path);
  if (typeof found === 'string') return undefined;
  switch (failureOf(() => accessSync(path, use))) {
    case undefined:
      return undefined;
    case 'EROFS':
      return `${path} is on a file system that is mounted read-only. Mount it for writing, or name another path.`;
    case 'EPERM':
      return `${path} is immutable. Run "chattr -i ${path}", or name another path.`;
    default:
      return denied(path, found, mode);
  }
}

function denied(path: string, found: Stats, mode: string): string {
  const { uid } = found;
  if (uid === process.geteuid?.()) {
    return `${path} is not writable, not even for its owner ${me()}. Run "chmod ${mode} ${path}".`;
  }
  const advice = found.isDirectory()
    ? `Give ${me()} the folder with "chown", or name a file in another one.`
    : `Run "chown ${me()} ${path}", or start as ${userOf(uid)}.`;
  return `${path} belongs to ${userOf(uid)}, and this process runs as ${me()}, who may not write to it. ${advice}`;
}

function statOf(path: string): Stats | string {
  let found: Stats | undefined;
  const failure = failureOf(() => {
    found = statSync(path);
  });
  return found ?? failure ?? '';
}

/** The code of the error that `work` throws, if any. */
function failureOf(work: () => void): string | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}

function me(): string {
  const uid = process.geteuid?.();
  return uid === undefined ? 'its user' : userOf(uid);
}

/** The name of a user; its number where the system has none. */
function userOf(uid: number): string {
  let name: string | undefined;
  failureOf(() => {
    const users = readFileSync('/etc/passwd', 'utf8').split('\n');
    name = users.map((line) => line.split(':')).find(([, , id]) => id === String(uid))?.[0];
  });
  return name ?? String(uid);
}
