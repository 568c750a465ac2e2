import type { DatabaseSync } from 'node:sqlite';
import { PACKAGE_ROOT } from '../../core/package-root.ts';
import { migrationFiles, pendingFiles, readMigration } from '../migration-files.ts';

const FOLDER = new URL('src/database/sqlite/migrations/', PACKAGE_ROOT);

/**
 * Applies the pending files of `migrations/` in order, in one transaction under the write lock, so that processes that
 * start together are serialised and a failure changes nothing. Returns the applied files. Throws DatabaseOpenError for a
 * database that a newer version has migrated, or with an unfinished move unless `moving` is `expected`.
 */
export function migrate(db: DatabaseSync, moving?: 'expected'): readonly string[] {
  const files = migrationFiles(FOLDER);
  db.exec('BEGIN IMMEDIATE');
  try {
    db.exec(
      'CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at INTEGER NOT NULL) STRICT',
    );
    const pending = pendingFiles(files, appliedTo(db), moving);
    const record = db.prepare('INSERT INTO migrations (name, applied_at) VALUES (?, ?)');
    for (const name of pending) {
      db.exec(readMigration(FOLDER, name));
      record.run(name, Date.now());
    }
    db.exec('COMMIT');
    return pending;
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

/** The files that were not applied yet; changes nothing. Throws as `migrate` does. */
export function pendingMigrations(db: DatabaseSync): readonly string[] {
  return pendingFiles(migrationFiles(FOLDER), appliedTo(db));
}

/** The migrations that were applied to a database. */
export function appliedTo(db: DatabaseSync): readonly string[] {
  const exists = db.prepare(`SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'migrations'`).get();
  if (exists === undefined) return [];
  const rows = db.prepare('SELECT name FROM migrations').all();
  return rows.map(({ name }) => String(name));
}
