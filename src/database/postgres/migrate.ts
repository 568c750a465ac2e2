import { PACKAGE_ROOT } from '../../core/package-root.ts';
import { migrationFiles, pendingFiles, readMigration } from '../migration-files.ts';
import { buildConcurrently, indexesOf, unlessBuilt } from './migration-indexes.ts';
import { withMigrationLock } from './migration-lock.ts';
import type { Connection } from './pool/connection.ts';

const FOLDER = new URL('src/database/postgres/migrations/', PACKAGE_ROOT);
/**
 * Applies the pending files of `migrations/` in order, under a lock and in one transaction, so that a failure changes
 * nothing. Only an index on a table that was there before is built first, while others write: what came before it is then
 * committed. Resolves to the applied files. Throws DatabaseOpenError for a database that a newer version has migrated, or
 * with an unfinished move unless `moving` is `expected`.
 */
export async function migrate(connection: Connection, moving?: 'expected'): Promise<readonly string[]> {
  // Most starts find nothing to do and need no lock.
  if ((await pendingMigrations(connection, moving)).length === 0) return [];
  return withMigrationLock(connection, async () => {
    const pending = await pendingMigrations(connection, moving);
    try {
      await applyFiles(connection, pending);
      return pending;
    } catch (error) {
      if (!connection.lost) await connection.run({ text: 'ROLLBACK' }, undefined);
      throw error;
    }
  });
}

async function applyFiles(connection: Connection, names: readonly string[]): Promise<void> {
  const command = (text: string) => connection.run({ text }, undefined);
  const tables = await tablesOf(connection);
  await command('BEGIN');
  await command('CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at BIGINT NOT NULL)');
  for (const name of names) {
    const sql = readMigration(FOLDER, name);
    // In a database without any migration everything is new.
    const indexes = tables.has('migrations') ? indexesOf(sql).filter(({ table }) => tables.has(table)) : [];
    if (indexes.length > 0) await command('COMMIT');
    for (const index of indexes) await buildConcurrently(connection, index);
    if (indexes.length > 0) await command('BEGIN');
    await command(unlessBuilt(sql));
    const record = { text: 'INSERT INTO migrations (name, applied_at) VALUES ($1, $2)' };
    await connection.run(record, [name, Date.now()]);
  }
  await command('COMMIT');
}

/** The tables that unqualified names find now. */
async function tablesOf(connection: Connection): Promise<ReadonlySet<string>> {
  const text = 'SELECT relname FROM pg_class WHERE pg_table_is_visible(oid)';
  return new Set((await connection.run({ text }, [])).map(([name]) => String(name)));
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
