import { readdirSync, readFileSync } from 'node:fs';
import { DatabaseOpenError } from '../errors.ts';
import type { Connection } from './connection.ts';

const FOLDER = new URL('./migrations/', import.meta.url);
/** The lock under which processes that start together take turns; the number is our own. */
const LOCK = 7_067_842_643;
/** Longer than a migration takes, in milliseconds. */
const TIMEOUT = 600_000;

/**
 * Brings the tables up to date: every numbered file of `migrations/` that the database has not seen runs once,
 * in order, all of them in one transaction under a lock, so that a failure leaves the database as it was.
 * Throws DatabaseOpenError for a database that a newer version has migrated.
 */
export async function migrate(connection: Connection): Promise<void> {
  const files = readdirSync(FOLDER)
    .filter((name) => name.endsWith('.sql'))
    .sort();
  const command = (text: string) => connection.run({ text }, undefined);
  // Most starts find nothing to do, and wait for nobody.
  if ((await missing(connection, files)).length === 0) return;
  await command(`BEGIN; SET LOCAL statement_timeout = ${TIMEOUT}; SET LOCAL lock_timeout = ${TIMEOUT}`);
  try {
    await command(`SELECT pg_advisory_xact_lock(${LOCK})`);
    await command(
      'CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at BIGINT NOT NULL)',
    );
    for (const name of await missing(connection, files)) {
      await command(readFileSync(new URL(name, FOLDER), 'utf8'));
      await connection.run({ text: 'INSERT INTO migrations (name, applied_at) VALUES ($1, $2)' }, [
        name,
        Date.now(),
      ]);
    }
    await command('COMMIT');
  } catch (error) {
    if (!connection.lost) await command('ROLLBACK');
    throw error;
  }
}

/** The files that the database has not seen. */
async function missing(connection: Connection, files: readonly string[]): Promise<readonly string[]> {
  const [exists] = await connection.run({ text: `SELECT to_regclass('migrations') IS NOT NULL` }, []);
  if (exists?.[0] !== true) return files;
  const rows = await connection.run({ text: 'SELECT name FROM migrations' }, []);
  const applied = new Set(rows.map(([name]) => String(name)));
  const unknown = [...applied].filter((name) => !files.includes(name));
  if (unknown.length > 0) {
    throw new DatabaseOpenError(
      `it was written by a newer version (${unknown.join(', ')}). Start that version, or restore a backup.`,
    );
  }
  return files.filter((name) => !applied.has(name));
}
