import { PACKAGE_ROOT } from '../../core/package-root.ts';
import { migrationFiles, pendingFiles, readMigration } from '../migration-files.ts';
import type { Connection } from './pool/connection.ts';

const FOLDER = new URL('src/database/postgres/migrations/', PACKAGE_ROOT);
/** The advisory lock that serialises processes that migrate at the same time; an arbitrary number. */
const LOCK = 7_067_842_643;
/** Longer than any migration, in milliseconds. */
const TIMEOUT = 600_000;

/**
 * Applies the pending files of `migrations/` in order, in one transaction under a lock, so that a failure changes
 * nothing. Resolves to the applied files. Throws DatabaseOpenError for a database that a newer version has migrated, or
 * with an unfinished move unless `moving` is `expected`.
 */
export async function migrate(connection: Connection, moving?: 'expected'): Promise<readonly string[]> {
  const command = (text: string) => connection.run({ text }, undefined);
  // Most starts find nothing to do and need no lock.
  if ((await pendingMigrations(connection, moving)).length === 0) return [];
  await command(`BEGIN; SET LOCAL statement_timeout = ${TIMEOUT}; SET LOCAL lock_timeout = ${TIMEOUT}`);
  try {
    await command(`SELECT pg_advisory_xact_lock(${LOCK})`);
    await command(
      'CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at BIGINT NOT NULL)',
    );
    const pending = await pendingMigrations(connection, moving);
    for (const name of pending) {
      await command(readMigration(FOLDER, name));
      await connection.run({ text: 'INSERT INTO migrations (name, applied_at) VALUES ($1, $2)' }, [
        name,
        Date.now(),
      ]);
    }
    await command('COMMIT');
    return pending;
  } catch (error) {
    if (!connection.lost) await command('ROLLBACK');
    throw error;
  }
}

/** The files that were not applied yet; changes nothing. Throws as `migrate` does. */
export async function pendingMigrations(
  connection: Connection,
  moving?: 'expected',
): Promise<readonly string[]> {
  const files = migrationFiles(FOLDER);
  const [exists] = await connection.run({ text: `SELECT to_regclass('migrations') IS NOT NULL` }, []);
  if (exists?.[0] !== true) return files;
  const rows = await connection.run({ text: 'SELECT name FROM migrations' }, []);
  return pendingFiles(
    files,
    rows.map(([name]) => String(name)),
    moving,
  );
}
