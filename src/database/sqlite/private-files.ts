import { closeSync, existsSync, openSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { pathOf } from './open-failure.ts';

/** The mode of files that hold data or lead to them: their owner's alone. */
const PRIVATE = 0o600;
/** What others than the owner and the group may do. */
const OTHERS = 0o007;
/** Read and write, for the owner and the group. */
const WITHOUT_OTHERS = 0o660;

/**
 * Creates the file of a database where there is none, before SQLite opens it: SQLite would let everybody read it whom the
 * umask lets. The WAL and its index get the mode of the file. `file` is a path or a URL, as SQLite takes it. Throws the
 * error of the file system.
 */
export function createPrivate(file: string): void {
  if (!isCreated(file)) return;
  const path = pathOf(file);
  // Closing a file that is there would give back the locks that this process has on it.
  if (!existsSync(path)) closeSync(openSync(path, 'a', PRIVATE));
}

/** Whether SQLite would create a file of this name. */
function isCreated(file: string): boolean {
  if (!file.startsWith('file:')) return file !== '' && file !== ':memory:';
  const { searchParams, pathname } = new URL(file, 'file:///');
  const mode = searchParams.get('mode');
  return (mode === null || mode === 'rwc') && !pathname.endsWith('/:memory:');
}

/** The mode of a copy of a file: for whom the file is, but never for others. */
export function modeOfCopy(path: string): number {
  return statSync(path).mode & WITHOUT_OTHERS;
}

/**
 * Which of a database's files others on this machine may use: the file, the WAL and its index, what restores have kept,
 * and `more`. A group may be there on purpose.
 */
export function exposedFiles(file: string, more: readonly string[]): readonly string[] {
  if (process.platform === 'win32') return [];
  const folder = dirname(file);
  const kept = readdirSync(folder).filter((name) => name.startsWith(`${basename(file)}.before-restore-`));
  const files = [file, `${file}-wal`, `${file}-shm`, ...kept.map((name) => join(folder, name)), ...more];
  return files.filter((path) => ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & OTHERS) !== 0);
}
