import { setTimeout as delay } from 'node:timers/promises';
import { requireNothingPending } from '../migration-files.ts';
import { bodyLength, bodyOf } from '../postgres/inbox/bodies/body-sql.ts';
import { pendingMigrations } from '../postgres/migrate.ts';
import type { Connection, Row } from '../postgres/pool/connection.ts';
import { sqlState } from '../postgres/pool/faults.ts';
import { openFailure, openFirst } from '../postgres/pool/first-connection.ts';
import { stored } from '../postgres/text.ts';
import type { MoveEnd } from './move-end.ts';
import { inUse, MoveError } from './move-error.ts';
import {
  BATCH,
  type Column,
  type MovedRow,
  type MovedTable,
  movedTables,
  ROW_BYTES,
  type Value,
} from './tables.ts';

/** How long stopped services may take to disconnect, in milliseconds. */
const TIMEOUT = 2_000;
/** Interval of the polls, in milliseconds. */
const PAUSE = 50;

const LOCK_NOT_AVAILABLE = '55P03';

/** Opens a database as the source of a move, locked against writes. */
export function openPostgresSource(url: string): Promise<MoveEnd> {
  return openEnd(url, 'source', async (connection) => {
    requireNothingPending(await pendingMigrations(connection), 'Run "portico migrate" on it first.');
    await refuseServices(connection, 'source');
    const tables = movedTables.map(({ name }) => name).join(', ');
    await connection.run({ text: `BEGIN; LOCK TABLE ${tables} IN SHARE MODE` }, undefined);
    return moveReads(connection, 'source');
  });
}

/**
 * Opens one end of a move; `use` locks it. Fails with MoveError while the database is in use, or with DatabaseOpenError.
 */
export async function openEnd<T extends object>(
  url: string,
  which: 'source' | 'target',
  use: (connection: Connection) => Promise<T>,
): Promise<T & AsyncDisposable> {
  try {
    await using opening = new AsyncDisposableStack();
    const connection = opening.use(await openFirst(url));
    await prepareForMove(connection);
    const end = await use(connection);
    const rest = opening.move();
    return { ...end, [Symbol.asyncDispose]: () => rest.disposeAsync() };
  } catch (cause) {
    if (sqlState(cause) === LOCK_NOT_AVAILABLE) throw inUse(which);
    throw cause instanceof MoveError ? cause : openFailure(cause);
  }
}

/** Marks the connection as no service, and removes its time limits: it may wait long for the other end. */
async function prepareForMove(connection: Connection): Promise<void> {
  const text = `
    SET application_name = 'portico move'; SET statement_timeout = 0; SET lock_timeout = 10000;
    SET idle_in_transaction_session_timeout = 0`;
  await connection.run({ text }, undefined);
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

/** The methods that source and target share. */
export async function moveReads(
  connection: Connection,
  which: 'source' | 'target',
): Promise<Omit<MoveEnd, keyof AsyncDisposable>> {
  const number = async (text: string) => Number((await connection.run({ text }, []))[0]?.[0] ?? 0);
  const origin = await number('SELECT applied_at FROM migrations ORDER BY name LIMIT 1');
  return {
    origin: `postgres-${origin}`,
    checkAlone: () => refuseServices(connection, which),
    count: ({ name }) => number(`SELECT count(*) FROM ${name}`),
    counter: ({ name, key }) =>
      number(`SELECT pg_sequence_last_value(pg_get_serial_sequence('${name}', '${key}'))`),
    async read(table, after) {
      const rows = await connection.run({ text: readStatement(table) }, [after]);
      return rows.map((row) => moved(row, table.columns));
    },
  };
}

/** Selects one batch: the inner query reads only the lengths of bodies to find where the batch ends. */
function readStatement({ name: table, key, columns }: MovedTable): string {
  const mayBeInSlot = (column: string) => table === 'deliveries' && column === 'body';
  const values = columns.map(({ name }) => (mayBeInSlot(name) ? bodyOf('sized') : name)).join(', ');
  const lengths = columns
    .filter(({ kind }) => kind !== 'integer')
    .map(({ name }) =>
      mayBeInSlot(name) ? bodyLength('window_of_rows') : `coalesce(octet_length(${name}), 0)`,
    )
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
