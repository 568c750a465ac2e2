import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { openReadConnection, openWriteConnection } from './connection.ts';
import { migrate, pendingMigrations } from './migrate.ts';
import { rewriteWal } from './writer/rewrite-wal.ts';

/** Migrates a file; returns the applied migrations. */
export function migrateFile(file: string): readonly string[] {
  using db = openWriteConnection(file);
  rewriteWal(db);
  return migrate(db);
}

/** The migrations that a file lacks; does not create the file. */
export function pendingInFile(file: string): readonly string[] {
  const exists = file.startsWith('file:') || existsSync(file);
  using db = exists ? openReadConnection(file) : new DatabaseSync(':memory:');
  return pendingMigrations(db);
}
