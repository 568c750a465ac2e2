import { setTimeout as delay } from 'node:timers/promises';
import { DELIVERY_BYTES } from '../inbox-sql.ts';
import { requireNothingPending } from '../migration-files.ts';
import { migrate, pendingMigrations } from '../postgres/migrate.ts';
import { storable, stored } from '../postgres/text.ts';
import { packBodies, resize } from '../postgres-inbox/append.ts';
import type { Connection, Row } from '../postgres-pool/connection.ts';
import { sqlState } from '../postgres-pool/connection.ts';
import { openFailure, openFirst } from '../postgres-pool/connector.ts';
import {
  BATCH,
  type Column,
  inUse,
  type MovedRow,
  type MovedTable,
  type MoveEngine,
  MoveError,
  movedTables,
  ROW_BYTES,
  type Value,
} from './tables.ts';

/** How long stopped services may take to disconnect, in milliseconds. */
const TIMEOUT = 2_000;
/** Interval of the polls, in milliseconds. */
const PAUSE = 50;

const LOCK_NOT_AVAILABLE = '55P03';

/** Opens a database as one end of a move. Fails with MoveError while it is in use, or with DatabaseOpenError. */
export async function openPostgresEngine(url: string, which: 'source' | 'target'): Promise<MoveEngine> {
  try {
    await using opening = new AsyncDisposableStack();
    const connection = opening.use(await openFirst(url));
    // The name does not count as a service. It has no time limits, because it may wait long for the other end.
    const text = `
      SET application_name = 'portico move'; SET statement_timeout = 0; SET lock_timeout = 10000;
      SET idle_in_transaction_session_timeout = 0`;
    await connection.run({ text }, undefined);
    await (which === 'source' ? lockSource(connection) : lockTarget(connection));
    const rest = opening.move();
    return { ...engineOn(connection, which), [Symbol.asyncDispose]: () => rest.disposeAsync() };
  } catch (cause) {
    if (sqlState(cause) === LOCK_NOT_AVAILABLE) throw inUse(which);
    throw cause instanceof MoveError ? cause : openFailure(cause);
  }
}

const TABLES = movedTables.map(({ name }) => name).join(', ');

async function lockSource(connection: Connection): Promise<void> {
  requireNothingPending(await pendingMigrations(connection), 'Run "portico migrate" on it first.');
  await refuseServices(connection, 'source');
  await connection.run({ text: `BEGIN; LOCK TABLE ${TABLES} IN SHARE MODE` }, undefined);
}

/**
 * The key of the advisory lock of a move, to which the oid of the table `migrations` is added; an arbitrary
 * number.
 */
const LOCK = 7_067_842_644_000_000;

async function lockTarget(connection: Connection): Promise<void> {
  await migrate(connection, { moving: 'expected' });
  // The server may still be executing the last batch of a killed move.
  await connection.run(
    { text: `SELECT pg_advisory_lock(${LOCK} + 'migrations'::regclass::oid::bigint)` },
    [],
  );
}

/** Fails with MoveError while services are connected. */
async function refuseServices(connection: Connection, which: 'source' | 'target'): Promise<void> {
  const deadline = performance.now() + TIMEOUT;
  const text = `
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND (application_name = 'portico' OR application_name LIKE 'portico: %')`;
  for (;;) {
    const [row] = await connection.run({ text }, []);
    if (row?.[0] === 0) return;
    if (performance.now() > deadline) throw inUse(which);
    await delay(PAUSE);
  }
}

function engineOn(
  connection: Connection,
  which: 'source' | 'target',
): Omit<MoveEngine, keyof AsyncDisposable> {
  const run = (text: string, values: readonly unknown[] = []) => connection.run({ text }, values);
  const value = async (text: string) => (await run(text))[0]?.[0];
  const sequence = ({ name, key }: MovedTable) => `pg_get_serial_sequence('${name}', '${key}')`;
  return {
    name: 'postgres',
    value,
    commit: (...statements) => connection.transaction(statements.map((text) => [{ text }, []])),
    async read(table, after) {
      const rows = await run(readStatement(table), [after]);
      return rows.map((row) => moved(row, table.columns));
    },
    write(table, rows) {
      const { text, values } = insert(table, rows);
      const sized = `WITH stored AS (${text} RETURNING ${DELIVERY_BYTES} AS bytes) ${resize('+', 'stored')}`;
      return run(table.name === 'deliveries' ? sized : text, values);
    },
    counter: async (table) => Number((await value(`SELECT pg_sequence_last_value(${sequence(table)})`)) ?? 0),
    setCounter(table, counter) {
      const known = `coalesce(pg_sequence_last_value(${sequence(table)}), 1)`;
      return run(`SELECT setval(${sequence(table)}, greatest($1, ${known}))`, [counter]);
    },
    checkAlone: () => refuseServices(connection, which),
    clear: [`TRUNCATE ${TABLES}, inbox_size RESTART IDENTITY`],
    derive: [],
    settle: () => run(`ANALYZE ${TABLES}`),
  };
}

/** Selects one batch: the inner query reads only the lengths of bodies to find the end of the batch. */
function readStatement({ name: table, key, columns }: MovedTable): string {
  const values = columns.map(({ name }) => name).join(', ');
  const lengths = columns
    .filter(({ kind }) => kind !== 'integer')
    .map(({ name }) => `coalesce(octet_length(${name}), 0)`)
    .join(' + ');
  return `
    SELECT ${values} FROM (
      SELECT *, sum(${ROW_BYTES} + ${lengths}) OVER (
        ORDER BY ${key} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
      FROM (SELECT * FROM ${table} WHERE ${key} > $1 ORDER BY ${key} LIMIT ${BATCH.rows}) AS window_of_rows) AS sized
    WHERE coalesce(bytes_before, 0) < ${BATCH.bytes} ORDER BY ${key}`;
}

function moved(row: Row, columns: readonly Column[]): MovedRow {
  return row.map((value, i) => {
    const kind = columns[i]?.kind;
    return kind === 'text' || kind === 'key' ? stored(value as string | null) : (value as Value);
  });
}

const ARRAYS = { integer: 'bigint[]', name: 'text[]', text: 'text[]', key: 'text[]' } as const;

/**
 * Inserts all rows in one statement. All blobs of a column are one value, with the offset and length of each.
 */
function insert({ name, columns }: MovedTable, rows: readonly MovedRow[]) {
  const values: unknown[] = [];
  const given: string[] = [];
  const arrays: string[] = [];
  const selected: string[] = [];
  const array = (type: string, named: string, items: readonly unknown[]) => {
    arrays.push(`$${values.push(items)}::${type}`);
    given.push(named);
  };
  for (const [i, column] of columns.entries()) {
    if (column.kind !== 'bytes') {
      const escaped = column.kind === 'text' || column.kind === 'key';
      array(
        ARRAYS[column.kind],
        column.name,
        rows.map((row) => (escaped ? storable(row[i] as string | null) : row[i])),
      );
      selected.push(column.name);
      continue;
    }
    const { starts, lengths, bytes } = packBodies(rows.map((row) => row[i] as Uint8Array));
    array('int[]', `${column.name}_start`, starts);
    array('int[]', `${column.name}_length`, lengths);
    const all = `$${values.push(bytes)}::bytea`;
    selected.push(`substring(${all} FROM ${column.name}_start FOR ${column.name}_length)`);
  }
  const names = columns.map(({ name }) => name).join(', ');
  const text = `
    INSERT INTO ${name} (${names}) OVERRIDING SYSTEM VALUE
    SELECT ${selected.join(', ')} FROM unnest(${arrays.join(', ')}) AS given (${given.join(', ')})`;
  return { text, values };
}
