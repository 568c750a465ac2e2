import { readdirSync, readFileSync } from 'node:fs';
import { isReserved } from '../config/schema/reserved-names.ts';
import { DatabaseOpenError } from '../core/errors.ts';

/**
 * The name prefix of the migration row that marks an unfinished move into the database. It works in every
 * version of Portico, because each refuses a database with a migration that it does not know.
 */
export const MOVING = 'moving-from-';

/** Options of a migration runner. */
export interface MigrationOptions {
  /** The folder of the migration files. Default: the engine's. */
  readonly folder?: URL | undefined;
  /** Whether to refuse a database with an unfinished move. Default: `refused`. */
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
 * The files not applied yet. Throws DatabaseOpenError if a newer version has migrated the database, or if a
 * move is unfinished and not expected.
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

/**
 * Throws DatabaseOpenError if a database without the tables of Portico has others with their names, by which Portico would
 * mistake them for its own.
 */
export function requireFreeNames(tables: readonly string[], engine: 'sqlite' | 'postgres'): void {
  const reserved = tables.filter(isReserved);
  // Keys and sequences have the name of their table.
  const taken = reserved.filter(
    (name) => !/_(?:pkey|key|seq)$/.test(name) || !reserved.some((other) => name.startsWith(`${other}_`)),
  );
  if (taken.length === 0) return;
  const remedy =
    engine === 'sqlite'
      ? 'Rename them, or give Portico another file.'
      : 'Give Portico a schema of its own: run CREATE SCHEMA portico, and add ?options=-csearch_path%3Dportico to the URL; relations then name the schema of their tables.';
  throw new DatabaseOpenError(
    `another program has made tables with names that Portico needs: ${taken.join(', ')}. ${remedy}`,
  );
}

/** Throws DatabaseOpenError if a migration is pending; `advice` says what to do. */
export function requireNothingPending(
  pending: readonly string[],
  advice = 'Run "portico migrate" first, or start without --no-migrate.',
): void {
  if (pending.length === 0) return;
  throw new DatabaseOpenError(`its schema is not up to date (${pending.join(', ')}). ${advice}`);
}
