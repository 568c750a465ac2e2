import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  linkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import {
  createPrivate,
  modeOfCopy,
  openExclusiveConnection,
  openReadConnection,
} from '../sqlite/connection.ts';
import { accessProblem, appliedTo, opening, pendingMigrations } from '../sqlite/migrate.ts';
import { isBusy, isServed, lockForService, runningService } from '../sqlite/service-lock.ts';
import { syncFolder } from './backup.ts';
import { BackupError } from './backup-error.ts';
import { type CopiedFile, type OnCopy, runCopy } from './copy.ts';

/** A finished restore. */
interface Restored extends CopiedFile {
  /** The path of the previous database; undefined if there was none. */
  readonly kept: string | undefined;
}

/**
 * Replaces an SQLite database that is not in use by a backup, and keeps the previous database beside it.
 * Until the copy is checked, the database is not touched. Rejects with BackupError, DatabaseOpenError or the
 * signal's reason; the database is then unchanged.
 */
export async function restoreBackup(
  from: string,
  to: string,
  { onCopy, signal }: { readonly onCopy: OnCopy; readonly signal: AbortSignal },
): Promise<Restored> {
  requireBackup(from);
  const problem = accessProblem(resolve(to));
  if (problem !== undefined) throw new BackupError(`The backup cannot be restored: ${problem}`);
  using held = new DisposableStack();
  const isNew = !existsSync(to);
  // The service lock requires an existing file.
  if (isNew) createPrivate(resolve(to));
  const file = realpathSync(to);
  const draft = `${file}.restoring`;
  held.defer(() => rmSync(draft, { force: true }));
  if (isNew) held.defer(() => statSync(file).size === 0 && rmSync(file));
  if (isServed(file)) throw new BackupError(`${runningService(file)} Stop it before you restore a backup.`);
  held.use(lockForService(file));
  const old = isNew ? undefined : alone(file);
  if (old !== undefined) held.defer(() => old.isOpen && old.close());

  const copied = await runCopy({ from, to: draft, live: false }, onCopy, signal);
  giveTo(draft, isNew ? { ...statSync(dirname(file)), mode: modeOfCopy(from) } : statSync(file));
  // Checkpoints and removes the WAL.
  old?.close();
  const kept = isNew ? undefined : keep(file);
  for (const path of [`${file}-wal`, `${file}-shm`]) rmSync(path, { force: true });
  renameSync(draft, file);
  syncFolder(dirname(file));
  return { ...copied, kept };
}

/** Throws if a file is not a backup that this version can use. */
function requireBackup(path: string): void {
  if (!existsSync(path)) throw new BackupError(`The file ${path} does not exist. Name a backup.`);
  opening(path, () => {
    using db = openReadConnection(path);
    if (appliedTo(db).length === 0)
      throw new BackupError(`${path} is not a Portico database. Name a backup.`);
    pendingMigrations(db);
  });
}

/** A connection that excludes all others; undefined if the file is damaged. */
function alone(file: string): DatabaseSync | undefined {
  try {
    return openExclusiveConnection(file);
  } catch (error) {
    if (!isBusy(error)) return undefined;
    throw new BackupError(
      `Another process uses ${file}, such as a command of Portico. End it and try again.`,
    );
  }
}

function giveTo(path: string, { uid, gid, mode }: { uid: number; gid: number; mode: number }): void {
  chmodSync(path, mode);
  if (process.geteuid?.() === 0) chownSync(path, uid, gid);
}

/** Links, or copies, the files of a database to a second name. */
function keep(file: string): string {
  const kept = `${file}.before-restore-${new Date().toISOString().slice(0, 19).replaceAll(':', '-')}Z`;
  // A damaged database still has its WAL.
  for (const suffix of ['-wal', '']) {
    if (!existsSync(file + suffix)) continue;
    try {
      linkSync(file + suffix, kept + suffix);
    } catch {
      copyFileSync(file + suffix, kept + suffix);
    }
  }
  return kept;
}
