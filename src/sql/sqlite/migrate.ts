import { accessSync, constants, readFileSync, type Stats, statfsSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { DatabaseOpenError } from '../../core/errors.ts';
import { PACKAGE_ROOT } from '../../core/package-root.ts';
import {
  type MigrationOptions,
  migrationFiles,
  pendingFiles,
  readMigration,
  requireFreeNames,
} from '../migration-files.ts';
import { serviceFiles } from './service-lock.ts';

const FOLDER = new URL('src/sql/sqlite/migrations/', PACKAGE_ROOT);

/**
 * Applies the pending files in order, in one transaction under the write lock: processes that start together
 * are serialised, and a failure changes nothing. Returns the applied files. Throws DatabaseOpenError if a
 * newer version has migrated the database, or if a move is unfinished and `moving` is not `expected`.
 */
export function migrate(
  db: DatabaseSync,
  { folder = FOLDER, moving }: MigrationOptions = {},
): readonly string[] {
  const files = migrationFiles(folder);
  db.exec('BEGIN IMMEDIATE');
  try {
    appliedTo(db);
    db.exec(
      'CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at INTEGER NOT NULL) STRICT',
    );
    const pending = pendingFiles(files, appliedTo(db), moving);
    const record = db.prepare('INSERT INTO migrations (name, applied_at) VALUES (?, ?)');
    for (const name of pending) {
      db.exec(readMigration(folder, name));
      record.run(name, Date.now());
    }
    db.exec('COMMIT');
    return pending;
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

/** The files not applied yet; changes nothing. Throws as `migrate` does. */
export function pendingMigrations(db: DatabaseSync, folder = FOLDER): readonly string[] {
  return pendingFiles(migrationFiles(folder), appliedTo(db));
}

/** The migrations applied to a database. Throws DatabaseOpenError if another program has tables with our names. */
export function appliedTo(db: DatabaseSync): readonly string[] {
  const columns = db.prepare(`SELECT group_concat(name) FROM pragma_table_info('migrations')`);
  columns.setReturnArrays(true);
  const [found] = columns.get() as unknown as readonly unknown[];
  if (found !== 'name,applied_at') {
    const tables = db
      .prepare(`SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'`)
      .all();
    requireFreeNames(
      tables.map(({ name }) => String(name)),
      'sqlite',
    );
    return [];
  }
  const rows = db.prepare('SELECT name FROM migrations').all();
  return rows.map(({ name }) => String(name));
}

/** SQLite needs more free space than this for a new WAL and its index, in bytes. */
const FULL = 64 * 1024;

/** Explains errors of SQLite and the file system, with a remedy. */
const EXPLANATIONS: readonly (readonly [RegExp, (path: string) => string])[] = [
  [/not a database/, () => 'the file is not an SQLite database. Name another file, or move this one away.'],
  [/malformed/, () => 'the file is damaged. Restore a backup.'],
  [
    /is locked/,
    () => 'database is locked by another process, such as a move. Start again when it has ended.',
  ],
  [/disk is full|ENOSPC/, diskFull],
];

/** The error for a file that cannot be opened or written: one sentence on the cause, one on the remedy. */
export function openFailure(file: string, cause: unknown): DatabaseOpenError {
  return new DatabaseOpenError(`The database ${file} cannot be opened: ${reason(file, cause)}`, { cause });
}

/** Runs `open`, which opens a file, and converts its errors. Throws DatabaseOpenError. */
export function opening<T>(file: string, open: () => T): T {
  try {
    return open();
  } catch (cause) {
    throw openFailure(file, cause);
  }
}

/**
 * Throws DatabaseOpenError if the file system does not permit writing a database, before SQLite creates files
 * beside it.
 */
export function requireAccess(file: string): void {
  // SQLite itself checks URLs.
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

/** The path of a file given as a path or as a URL that SQLite accepts: `file:data.db`. */
export function pathOf(file: string): string {
  return file.startsWith('file:') ? fileURLToPath(new URL(file, pathToFileURL('./'))) : resolve(file);
}

/**
 * Why this process cannot write a database at `path`, with a remedy; undefined if the file system permits it.
 */
export function accessProblem(path: string): string | undefined {
  return folderProblem(dirname(path)) ?? fileProblem(path);
}

function folderProblem(folder: string): string | undefined {
  const found = statOf(folder);
  if (found === 'ENOENT') return `the folder ${folder} does not exist. Create it, or name another path.`;
  if (found === 'EACCES')
    return `${me()} may not enter the folders above ${folder}. Allow that, or name another path.`;
  if (typeof found === 'string' || !found.isDirectory())
    return `${folder} is not a folder. Name another path.`;
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

/** Why a file or folder cannot be used in this way; undefined if it can, or does not exist. */
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

/** The code of the error that `work` throws; undefined if it succeeds. */
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

/** The name of a user, or the number if the system has no name for it. */
function userOf(uid: number): string {
  let name: string | undefined;
  failureOf(() => {
    const users = readFileSync('/etc/passwd', 'utf8').split('\n');
    name = users.map((line) => line.split(':')).find(([, , id]) => id === String(uid))?.[0];
  });
  return name ?? String(uid);
}
