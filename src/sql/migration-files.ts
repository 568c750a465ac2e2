import { readdirSync, readFileSync } from 'node:fs';
import { DatabaseOpenError } from '../core/errors.ts';

/**
 * The name prefix of the migration row that marks an unfinished move into the database. Every version of Portico refuses
 * a database with a migration that it does not know.
 */
export const MOVING = 'moving-from-';

/** What a migration runner applies. */
export interface MigrationOptions {
  /** The folder of the files; default that of the engine. */
  readonly folder?: URL | undefined;
  /** Whether a database with an unfinished move is refused; default `refused`. */
  readonly moving?: 'refused' | 'expected' | undefined;
}

/** The names of the migration files in a folder, in order. */
export function migrationFiles(folder: URL): readonly string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort();
}

/** The SQL of a migration file. */
export function readMigration(folder: URL, name: string): string {
  return readFileSync(new URL(name, folder), 'utf8');
}

/**
 * The files that were not applied yet. Throws DatabaseOpenError for a database that a newer version has migrated, and
 * for one with an unfinished move unless that is expected.
 */
export function pendingFiles(
  files: readonly string[],
  applied: readonly string[],
  moving: MigrationOptions['moving'] = 'refused',
): readonly string[] {
  const isMove = (name: string) => name.startsWith(MOVING);
  if (moving === 'refused' && applied.some(isMove)) {
    throw new DatabaseOpenError(
      'a move into it is unfinished. Run "portico move" again with the same arguments, or with --restart.',
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

/** Throws DatabaseOpenError when a migration is pending; `advice` says what to do. */
export function requireNothingPending(
  pending: readonly string[],
  advice = 'Run "portico migrate" first, or start without --no-migrate.',
): void {
  if (pending.length === 0) return;
  throw new DatabaseOpenError(`its schema is not up to date (${pending.join(', ')}). ${advice}`);
}
