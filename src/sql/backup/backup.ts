import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { basename, dirname, extname, join } from 'node:path';
import { DatabaseOpenError } from '../../core/errors.ts';
import { databaseAt } from '../database.ts';
import { modeOfCopy } from '../sqlite/connection.ts';
import { accessProblem, pathOf } from '../sqlite/migrate.ts';
import { BackupError } from './backup-error.ts';
import { type CopiedFile, type OnCopy, runCopy } from './copy.ts';

/**
 * Writes a backup of an SQLite file; it appears under its name only once it is complete and checked. Rejects
 * as `runCopy` does, and with BackupError if `to` exists.
 */
export async function writeBackup(
  from: string,
  to: string,
  { live, onCopy, signal }: { readonly live: boolean; readonly onCopy: OnCopy; readonly signal: AbortSignal },
): Promise<CopiedFile> {
  if (existsSync(to)) {
    throw new BackupError(`The file ${to} already exists. Name another one, or remove it first.`);
  }
  const partial = `${to}.partial`;
  const problem = accessProblem(partial);
  if (problem !== undefined) throw new BackupError(`No backup can be written: ${problem}`);
  try {
    const copied = await runCopy({ from, to: partial, live }, onCopy, signal);
    // The copy contains the same data as the database, so no other user may read it.
    chmodSync(partial, modeOfCopy(from));
    renameSync(partial, to);
    syncFolder(dirname(to));
    return copied;
  } finally {
    for (const path of [partial, `${partial}-journal`]) rmSync(path, { force: true });
  }
}

/** Makes a rename in a folder durable, if the system supports it. */
export function syncFolder(path: string): void {
  if (process.platform === 'win32') return;
  const folder = openSync(path, 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

/**
 * The file of an SQLite database, the only kind that Portico backs up. Throws BackupError for PostgreSQL;
 * `postgres` is the shell command that its message suggests. Throws DatabaseOpenError for `:memory:`.
 */
export function backupFileOf(url: string, postgres: string): string {
  const { engine, place } = databaseAt(url);
  if (engine === 'postgres') {
    throw new BackupError(
      `The database is on PostgreSQL, which has its own tools for that. With its URL in DATABASE_URL, run:\n\n  ${postgres}\n`,
    );
  }
  if (place === ':memory:') {
    throw new DatabaseOpenError('The database is sqlite::memory:, which exists only while its service runs.');
  }
  return pathOf(place);
}

const STAMP = /^-(\d{4}-\d{2}-\d{2})T(\d{2})-(\d{2})-(\d{2})Z\.db(\.partial(?:-journal)?)?$/;
/**
 * Files left by a killed process are abandoned, rather than a backup in progress, after this age in
 * milliseconds.
 */
const ABANDONED = 86_400_000;

/** A backup in a folder. */
export interface NamedBackup {
  readonly path: string;
  /** When it was started, in milliseconds since the epoch. */
  readonly at: number;
}

/** The file name of a backup: `portico-2026-01-31T14-00-00Z.db`. `at` is in milliseconds since the epoch. */
export function backupName(file: string, at: number): string {
  const stamp = new Date(at).toISOString().slice(0, 19).replaceAll(':', '-');
  return `${stemOf(file)}-${stamp}Z.db`;
}

/** The backups of a database in a folder, oldest first; empty if the folder does not exist. */
export function backupsIn(folder: string, file: string): readonly NamedBackup[] {
  return stampedIn(folder, file).filter(({ isWhole }) => isWhole);
}

/**
 * Removes all but the newest `keep` backups of a database, and abandoned files of killed processes. `now` is
 * in milliseconds since the epoch. Throws file system errors.
 */
export function rotateBackups(folder: string, file: string, keep: number, now: number): void {
  const stamped = stampedIn(folder, file);
  const whole = stamped.filter(({ isWhole }) => isWhole);
  const abandoned = stamped.filter(({ isWhole, at }) => !isWhole && at < now - ABANDONED);
  for (const { path } of [...whole.slice(0, -keep), ...abandoned]) rmSync(path, { force: true });
}

function stampedIn(folder: string, file: string): readonly (NamedBackup & { readonly isWhole: boolean })[] {
  const stem = stemOf(file);
  const found = namesIn(folder).flatMap((name) => {
    const rest = name.startsWith(stem) ? name.slice(stem.length) : '';
    const [, day, hour, minute, second, partial] = STAMP.exec(rest) ?? [];
    const at = Date.parse(`${day}T${hour}:${minute}:${second}Z`);
    return Number.isNaN(at) ? [] : [{ path: join(folder, name), at, isWhole: partial === undefined }];
  });
  return found.sort((a, b) => a.at - b.at);
}

function stemOf(file: string): string {
  return basename(file, extname(file));
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
