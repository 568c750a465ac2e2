import { readdirSync, readFileSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { DatabaseOpenError } from '../errors.ts';

const FOLDER = new URL('./migrations/', import.meta.url);

/**
 * Brings the tables up to date: every numbered file of `migrations/` that the database has not seen runs once,
 * in order, all of them in one transaction under the write lock, so that processes that start together
 * take turns and a failure leaves the database as it was.
 * Throws DatabaseOpenError for a database that a newer version has migrated.
 */
export function migrate(db: DatabaseSync): void {
  const files = readdirSync(FOLDER)
    .filter((name) => name.endsWith('.sql'))
    .sort();
  db.exec('BEGIN IMMEDIATE');
  try {
    db.exec(
      'CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at INTEGER NOT NULL) STRICT',
    );
    const applied = new Set(
      db
        .prepare('SELECT name FROM migrations')
        .all()
        .map((row) => String(row.name)),
    );
    const unknown = [...applied].filter((name) => !files.includes(name));
    if (unknown.length > 0) {
      throw new DatabaseOpenError(
        `it was written by a newer version (${unknown.join(', ')}). Start that version, or restore a backup.`,
      );
    }
    const record = db.prepare('INSERT INTO migrations (name, applied_at) VALUES (?, ?)');
    for (const name of files) {
      if (applied.has(name)) continue;
      db.exec(readFileSync(new URL(name, FOLDER), 'utf8'));
      record.run(name, Date.now());
    }
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}
