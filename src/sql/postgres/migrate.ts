import { setTimeout as sleep } from 'node:timers/promises';
import { PACKAGE_ROOT } from '../../core/package-root.ts';
import {
  type MigrationOptions,
  migrationFiles,
  pendingFiles,
  readMigration,
  requireFreeNames,
} from '../migration-files.ts';
import type { Connection } from '../postgres-pool/connection.ts';
import { sqlState } from '../postgres-pool/connection.ts';

const FOLDER = new URL('src/sql/postgres/migrations/', PACKAGE_ROOT);

/**
 * Applies the pending files in order, under a lock and in one transaction, so that a failure changes nothing.
 * The exception is an index on an existing table: it is built first, concurrently with writes, and earlier
 * files are committed before. Resolves to the applied files. Throws DatabaseOpenError if a newer version has
 * migrated the database, or if a move is unfinished and `moving` is not `expected`.
 */
export async function migrate(
  connection: Connection,
  options: MigrationOptions = {},
): Promise<readonly string[]> {
  // Most starts have nothing to migrate and need no lock.
  if ((await pendingMigrations(connection, options)).length === 0) return [];
  return withMigrationLock(connection, async () => {
    const pending = await pendingMigrations(connection, options);
    try {
      await applyFiles(connection, pending, options.folder);
      return pending;
    } catch (error) {
      if (!connection.lost) await connection.run({ text: 'ROLLBACK' }, undefined);
      throw error;
    }
  });
}

async function applyFiles(connection: Connection, names: readonly string[], folder = FOLDER): Promise<void> {
  const command = (text: string) => connection.run({ text }, undefined);
  const tables = await tablesOf(connection);
  await command('BEGIN');
  await command('CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at BIGINT NOT NULL)');
  for (const name of names) {
    const sql = readMigration(folder, name);
    // In a database without migrations, all tables are new.
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

/** The tables that unqualified names currently refer to. */
async function tablesOf(connection: Connection): Promise<ReadonlySet<string>> {
  const text = 'SELECT relname FROM pg_class WHERE pg_table_is_visible(oid)';
  return new Set((await connection.run({ text }, [])).map(([name]) => String(name)));
}

/** The columns of the table of migrations, and the names of all tables and indexes in its schema. */
const COLUMNS = `
  SELECT string_agg(attname::text, ',' ORDER BY attnum) FROM pg_attribute
  WHERE attrelid = to_regclass('migrations') AND attnum > 0 AND NOT attisdropped`;
const TABLES = 'SELECT relname::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace';

/** The files not applied yet; changes nothing. Throws as `migrate` does. */
export async function pendingMigrations(
  connection: Connection,
  { folder = FOLDER, moving }: MigrationOptions = {},
): Promise<readonly string[]> {
  const files = migrationFiles(folder);
  const isMigrated = async () => {
    const [columns] = await connection.run({ text: COLUMNS }, []);
    return columns?.[0] === 'name,applied_at';
  };
  if (!(await isMigrated())) {
    const tables = await connection.run({ text: TABLES }, []);
    // Another process may have migrated meanwhile, and these are its tables.
    if (!(await isMigrated())) {
      requireFreeNames(
        tables.map(([name]) => String(name)),
        'postgres',
      );
      return files;
    }
  }
  const rows = await connection.run({ text: 'SELECT name FROM migrations' }, []);
  return pendingFiles(
    files,
    rows.map(([name]) => String(name)),
    moving,
  );
}

const CREATE_INDEX = /^CREATE (?<unique>UNIQUE )?INDEX (?<name>\w+) ON (?<table>\w+)(?<rest>[^;]*);/gm;
const UNDEFINED_COLUMN = '42703';

/** An index that a migration creates. */
interface MigrationIndex {
  readonly name: string;
  readonly table: string;
  /** Creates it concurrently with writes, unless it exists; must run outside a transaction. */
  readonly concurrently: string;
}

/** The indexes that the SQL of a migration creates. */
function indexesOf(sql: string): readonly MigrationIndex[] {
  return Array.from(sql.matchAll(CREATE_INDEX), ({ groups }) => {
    const { unique = '', name = '', table = '', rest = '' } = groups ?? {};
    const concurrently = `CREATE ${unique}INDEX CONCURRENTLY IF NOT EXISTS ${name} ON ${table}${rest}`;
    return { name, table, concurrently };
  });
}

/** The SQL of a migration, skipping indexes that exist already. */
function unlessBuilt(sql: string): string {
  return sql.replace(CREATE_INDEX, 'CREATE $<unique>INDEX IF NOT EXISTS $<name> ON $<table>$<rest>;');
}

/**
 * Builds an index concurrently with writes, which would otherwise wait for it. Leaves it to the migration if
 * that adds a column which the index needs. Replaces the remains of an interrupted build.
 */
async function buildConcurrently(connection: Connection, index: MigrationIndex): Promise<void> {
  const valid = { text: 'SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)' };
  const [row] = await connection.run(valid, [index.name]);
  if (row?.[0] === false) {
    await connection.run({ text: `DROP INDEX CONCURRENTLY ${index.name}` }, undefined);
  }
  try {
    await connection.run({ text: index.concurrently }, undefined);
  } catch (error) {
    if (sqlState(error) !== UNDEFINED_COLUMN) throw error;
  }
}

/** The advisory lock that serialises concurrent migrations; an arbitrary number. */
const LOCK = 7_067_842_643;
/** Longer than any wait of a migration, in milliseconds. */
const TIMEOUT = 600_000;
/** Time between two attempts to take the lock, in milliseconds. */
const INTERVAL = 50;

/**
 * Runs `work` under the migration lock, without timeouts for its statements. Processes poll for the lock,
 * because a concurrent index build would wait for a statement that waits for the lock.
 */
export async function withMigrationLock<T>(connection: Connection, work: () => Promise<T>): Promise<T> {
  const set = (values: readonly unknown[]) =>
    connection.run(
      { text: `SELECT set_config('statement_timeout', $1, false), set_config('lock_timeout', $2, false)` },
      values,
    );
  const limits = `SELECT current_setting('statement_timeout'), current_setting('lock_timeout')`;
  const [before = []] = await connection.run({ text: limits }, []);
  await takeLock(connection);
  try {
    await set(['0', String(TIMEOUT)]);
    return await work();
  } finally {
    if (!connection.lost) {
      await set(before);
      await connection.run({ text: `SELECT pg_advisory_unlock(${LOCK})` }, []);
    }
  }
}

async function takeLock(connection: Connection): Promise<void> {
  for (const deadline = performance.now() + TIMEOUT; ; await sleep(INTERVAL)) {
    const [row] = await connection.run({ text: `SELECT pg_try_advisory_lock(${LOCK})` }, []);
    if (row?.[0] === true) return;
    if (performance.now() > deadline) throw new Error('another process is migrating the database');
  }
}
