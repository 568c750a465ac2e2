import { statfsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { DatabaseOpenError } from '../../core/store-errors.ts';
import { accessProblem } from './access-problem.ts';

/** Less free space than SQLite needs to begin a write-ahead log and its index, in bytes. */
const FULL = 64 * 1024;

/** What the messages of SQLite and of the file system mean, and what to do. */
const EXPLANATIONS: readonly (readonly [RegExp, (path: string) => string])[] = [
  [/not a database/, () => 'the file is no SQLite database. Name another file, or move this one away.'],
  [/malformed/, () => 'the file is damaged. Restore a backup.'],
  [
    /is locked/,
    () => 'database is locked by another process, such as a move. Start again when it has ended.',
  ],
  [/disk is full|ENOSPC/, diskFull],
];

/** The error of a file that cannot be opened or written to: one sentence on the cause, one on what to do. */
export function openFailure(file: string, cause: unknown): DatabaseOpenError {
  return new DatabaseOpenError(`The database ${file} cannot be opened: ${reason(file, cause)}`, { cause });
}

/** Runs `open`, which opens a file. Throws DatabaseOpenError. */
export function opening<T>(file: string, open: () => T): T {
  try {
    return open();
  } catch (cause) {
    throw openFailure(file, cause);
  }
}

/** Throws DatabaseOpenError where the file system lets nobody write a database, before SQLite makes files beside it. */
export function requireAccess(file: string): void {
  // What a URL means is for SQLite to say.
  const problem = file.startsWith('file:') ? undefined : accessProblem(resolve(file));
  if (problem !== undefined) throw new DatabaseOpenError(problem);
}

function reason(file: string, cause: unknown): string {
  if (cause instanceof DatabaseOpenError) return cause.message;
  const message = cause instanceof Error ? cause.message : String(cause);
  const path = pathOf(file);
  const explain = EXPLANATIONS.find(([pattern]) => pattern.test(message))?.[1];
  if (explain !== undefined) return explain(path);
  return accessProblem(path) ?? (hasNoSpace(path) ? diskFull(path) : message);
}

function diskFull(path: string): string {
  return `the disk is full. Free some space in ${dirname(path)}.`;
}

function hasNoSpace(path: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(dirname(path));
    return bavail * bsize < FULL;
  } catch {
    return false;
  }
}

/** The path of a file that may be named by a URL, as SQLite takes it: `file:data.db`. */
export function pathOf(file: string): string {
  return file.startsWith('file:') ? fileURLToPath(new URL(file, pathToFileURL('./'))) : resolve(file);
}
