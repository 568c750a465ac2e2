import { readdirSync, readFileSync } from 'node:fs';
import { DatabaseOpenError } from './errors.ts';

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
 * newer version has migrated, or that a move has not ended for.
 */
export function pendingFiles(files: readonly string[], applied: readonly string[]): readonly string[] {
  if (applied.some((name) => name.startsWith(MOVING))) {
    throw new DatabaseOpenError(
      'a move into it has not ended. Run "portico move" again with the same arguments, or with --restart.',
    );
  }
  const unknown = applied.filter((name) => !files.includes(name));
  if (unknown.length > 0) {
    throw new DatabaseOpenError(
      `it was written by a newer version (${unknown.join(', ')}). Start that version, or restore a backup.`,
    );
  }
  return files.filter((name) => !applied.includes(name));
}

/** Throws DatabaseOpenError when there is something that the database has not seen. */
export function requireNothingPending(pending: readonly string[]): void {
  if (pending.length === 0) return;
  throw new DatabaseOpenError(
    `its schema is not up to date (${pending.join(', ')}). Run "portico migrate" first, or start without --no-migrate.`,
  );
}
