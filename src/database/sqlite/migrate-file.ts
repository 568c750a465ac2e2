import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { openReadConnection, openWriteConnection } from './connection.ts';
import { migrate, pendingMigrations } from './migrate.ts';
import { openFailure } from './open-failure.ts';
import { rewriteWal } from './writer/rewrite-wal.ts';

/** Migrates a file; returns the applied migrations. Throws DatabaseOpenError. */
export function migrateFile(file: string): readonly string[] {
  try {
    using db = openWriteConnection(file);
    rewriteWal(db);
    return migrate(db);
  } catch (cause) {
    throw openFailure(file, cause);
  }
}

/** The migrations that a file lacks; does not create the file. Throws DatabaseOpenError. */
export function pendingInFile(file: string): readonly string[] {
  try {
    return pendingIn(file);
  } catch (cause) {
    throw openFailure(file, cause);
  }
}

/** As `pendingInFile`, but throws SQLite's error. */
export function pendingIn(file: string): readonly string[] {
  const exists = file.startsWith('file:') || existsSync(file);
  using db = exists ? openReadConnection(file) : new DatabaseSync(':memory:');
  return pendingMigrations(db);
}
