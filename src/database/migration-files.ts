import { readdirSync, readFileSync } from 'node:fs';
import { DatabaseOpenError } from '../core/store-errors.ts';

/**
 * A name like this among the migrations says that a move into the database has not ended. Every version takes the
 * database for one of a version that it does not know, and leaves it alone.
 */
export const MOVING = 'moving-from-';

/** The numbered files of an engine's folder, in their order. */
export function migrationFiles(folder: URL): readonly string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort();
}

/** The statements of a file. */
export function readMigration(folder: URL, name: string): string {
  return readFileSync(new URL(name, folder), 'utf8');
}

/**
 * The files that a database has not seen, of those that there are. Throws DatabaseOpenError for a database that a
 * newer version has migrated, or, where that is refused, one with a move that has not ended.
 */
export function pendingFiles(
  files: readonly string[],
  applied: readonly string[],
  moving: 'refused' | 'expected' = 'refused',
): readonly string[] {
  const isMove = (name: string) => name.startsWith(MOVING);
  if (moving === 'refused' && applied.some(isMove)) {
    throw new DatabaseOpenError(
      'a move into it has not ended. Run "portico move" again with the same arguments, or with --restart.',
    );
  }
  const unknown = applied.filter((name) => !files.includes(name) && !isMove(name));
  if (unknown.length > 0) {
    throw new DatabaseOpenError(
      `it was written by a newer version (${unknown.join(', ')}). Start that version, or restore a backup.`,
    );
  }
  return files.filter((name) => !applied.includes(name));
}

/** Throws DatabaseOpenError when there is something that the database has not seen; `advice` says what to do. */
export function requireNothingPending(
  pending: readonly string[],
  advice = 'Run "portico migrate" first, or start without --no-migrate.',
): void {
  if (pending.length === 0) return;
  throw new DatabaseOpenError(`its schema is not up to date (${pending.join(', ')}). ${advice}`);
}
