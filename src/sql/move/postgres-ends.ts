import { setTimeout as delay } from 'node:timers/promises';
import { MOVING, requireNothingPending } from '../migration-files.ts';
import { migrate, pendingMigrations } from '../postgres/migrate.ts';
import { storable, stored } from '../postgres/text.ts';
import { DELIVERY_BYTES, packBodies, resize } from '../postgres-inbox/append.ts';
import type { Connection, Row } from '../postgres-pool/connection.ts';
import { openFailure, openFirst } from '../postgres-pool/connector.ts';
import { sqlState } from '../postgres-pool/faults.ts';
import {
  BATCH,
  type Column,
  inUse,
  type MovedRow,
  type MovedTable,
  type MoveEnd,
  MoveError,
  type MoveTarget,
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
 * Opens one end of a move; `use` locks it. Fails with MoveError while the database is in use, or with
 * DatabaseOpenError.
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

/**
 * Names the connection, so that it does not count as a service, and removes its time limits, because it may
 * have to wait long for the other end.
 */
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

/**
 * The key of the advisory lock of a move, to which the oid of the table `migrations` is added; an arbitrary
 * number.
 */
const LOCK = 7_067_842_644_000_000;
const UNMARK = `DELETE FROM migrations WHERE starts_with(name, '${MOVING}')`;

/** Opens a database as the target of a move, locked against other moves. */
export function openPostgresTarget(url: string): Promise<MoveTarget> {
  return openEnd(url, 'target', async (connection) => {
    await migrate(connection, { moving: 'expected' });
    // The server may still be executing the last batch of a killed move.
    await connection.run(
      { text: `SELECT pg_advisory_lock(${LOCK} + 'migrations'::regclass::oid::bigint)` },
      [],
    );
    return targetOn(connection);
  });
}

async function targetOn(connection: Connection): Promise<Omit<MoveTarget, keyof AsyncDisposable>> {
  const run = (text: string, values: readonly unknown[] = []) => connection.run({ text }, values);
  const reads = await moveReads(connection, 'target');
  const [mark] = await run(`SELECT name FROM migrations WHERE starts_with(name, '${MOVING}')`);
  const tables = movedTables.map(({ name }) => name).join(', ');
  return {
    ...reads,
    unfinished: mark === undefined ? undefined : String(mark[0]).slice(MOVING.length),
    async begin(origin) {
      await run('INSERT INTO migrations (name, applied_at) VALUES ($1, $2)', [
        `${MOVING}${origin}`,
        Date.now(),
      ]);
      try {
        // A service that starts later sees the mark.
        await reads.checkAlone();
      } catch (error) {
        await run(UNMARK);
        throw error;
      }
    },
    async clear() {
      await connection.transaction([
        [{ text: `TRUNCATE ${tables}, inbox_size RESTART IDENTITY` }, []],
        [{ text: UNMARK }, []],
      ]);
    },
    async last({ name, key }) {
      const [row] = await run(`SELECT max(${key}) FROM ${name}`);
      return Number(row?.[0] ?? 0);
    },
    async write(table, rows) {
      const { text, values } = insert(table, rows);
      const sized = `WITH stored AS (${text} RETURNING ${DELIVERY_BYTES} AS bytes) ${resize('+', 'stored')}`;
      await run(table.name === 'deliveries' ? sized : text, values);
    },
    async setCounter({ name, key }, counter) {
      if (counter === 0) return;
      const sequence = `pg_get_serial_sequence('${name}', '${key}')`;
      await run(
        `SELECT setval(${sequence}, greatest($1, coalesce(pg_sequence_last_value(${sequence}), 1)))`,
        [counter],
      );
    },
    async finish() {
      await run('UPDATE retention_cursors SET at = 0, seq = 0');
      // The moved users are not new changes, so followers start here.
      await connection.transaction([
        [{ text: 'TRUNCATE user_events, user_relay' }, []],
        [
          {
            text: `INSERT INTO user_events (type, at, user_id, name, email) VALUES ('start', $1::bigint, 0, '', '')`,
          },
          [Date.now()],
        ],
      ]);
      await run(`ANALYZE ${tables}`);
      await run(UNMARK);
    },
  };
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
