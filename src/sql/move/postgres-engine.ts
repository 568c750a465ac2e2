import { setTimeout as delay } from 'node:timers/promises';
import type { Value } from '../../relations/relation.ts';
import { DELIVERY_BYTES } from '../inbox-sql.ts';
import { requireNothingPending } from '../migration-files.ts';
import { migrate, pendingMigrations } from '../postgres/migrate.ts';
import { storable, stored } from '../postgres/text.ts';
import { packBodies, resize } from '../postgres-inbox/append.ts';
import type { Connection, Row } from '../postgres-pool/connection.ts';
import { sqlState } from '../postgres-pool/connection.ts';
import { openFailure, openFirst } from '../postgres-pool/connector.ts';
import { postgresSession } from '../schema/postgres-session.ts';
import { identifier, textLiteral } from '../schema/tables.ts';
import {
  BATCH,
  type Column,
  inUse,
  type MovedRow,
  type MovedTable,
  type MoveEngine,
  MoveError,
  ROW_BYTES,
  readParts,
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
    await (which === 'source' ? checkSource(connection) : lockTarget(connection));
    const rest = opening.move();
    return { ...engineOn(connection, which), [Symbol.asyncDispose]: () => rest.disposeAsync() };
  } catch (cause) {
    throw failure(cause, which);
  }
}

function failure(cause: unknown, which: 'source' | 'target'): unknown {
  if (sqlState(cause) === LOCK_NOT_AVAILABLE) return inUse(which);
  return cause instanceof MoveError ? cause : openFailure(cause);
}

const listOf = (tables: readonly MovedTable[]) => tables.map(({ name }) => identifier(name)).join(', ');

async function checkSource(connection: Connection): Promise<void> {
  requireNothingPending(await pendingMigrations(connection), 'Run "portico migrate" on it first.');
  await refuseServices(connection, 'source');
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
  const sequence = ({ name, key }: MovedTable) =>
    `pg_get_serial_sequence(${textLiteral(identifier(name))}, ${textLiteral(key[0] ?? '')})`;
  return {
    name: 'postgres',
    session: postgresSession(connection),
    async begin(tables) {
      if (which === 'target') return;
      const text = `BEGIN; LOCK TABLE ${listOf(tables)} IN SHARE MODE`;
      await connection.run({ text }, undefined).catch((cause: unknown) => {
        throw failure(cause, which);
      });
    },
    async hasTable(name) {
      const [row] = await run('SELECT to_regclass($1) IS NOT NULL', [identifier(name)]);
      return row?.[0] === true;
    },
    value,
    commit: (...statements) => connection.transaction(statements.map((text) => [{ text }, []])),
    async read(table, after) {
      const key = after === undefined ? [] : table.columns.slice(0, table.key.length);
      const rows = await run(
        readStatement(table, after !== undefined),
        key.map(({ kind }, i) => bound(kind, after?.[i] ?? null)),
      );
      return rows.map((row) => moved(row, table.columns));
    },
    async last(table) {
      const key = { ...table, columns: table.columns.slice(0, table.key.length) };
      const { values, from, descending } = readParts('postgres', key, false);
      const [row] = await run(`SELECT ${values} FROM ${from} ORDER BY ${descending} LIMIT 1`);
      return row === undefined ? undefined : moved(row, key.columns);
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
    // Others may refer to users.
    clear: (tables) => [`TRUNCATE ${listOf(tables)}, inbox_size RESTART IDENTITY CASCADE`],
    derive: [],
    settle: (tables) => run(`ANALYZE ${listOf(tables)}`),
  };
}

/** Selects one batch: the inner query reads only the lengths of values to find the end of the batch. */
function readStatement(table: MovedTable, isAfter: boolean): string {
  const { values, from, order } = readParts('postgres', table, isAfter);
  const lengths = table.columns.flatMap(({ name, kind }) => lengthOf(`r.${identifier(name)}`, kind));
  return `
    SELECT ${values} FROM (
      SELECT *, sum(${[ROW_BYTES, ...lengths].join(' + ')}) OVER (
        ORDER BY ${order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS _bytes_before
      FROM (SELECT * FROM ${from} ORDER BY ${order} LIMIT ${BATCH.rows}) AS r) AS r
    WHERE coalesce(_bytes_before, 0) < ${BATCH.bytes} ORDER BY ${order}`;
}

/** The length of a value, if it may be long. */
function lengthOf(column: string, kind: Column['kind']): readonly string[] {
  const type = typeof kind === 'object' ? kind.postgres.type : kind === 'integer' ? 'bigint' : 'text';
  if (type === 'json') return [`coalesce(octet_length(${column}::text), 0)`];
  return type === 'text' || type === 'bytea' ? [`coalesce(octet_length(${column}), 0)`] : [];
}

function moved(row: Row, columns: readonly Column[]): MovedRow {
  return row.map((value, i) => {
    const kind = columns[i]?.kind;
    if (typeof kind === 'object') return kind.postgres.read(value);
    return kind === 'text' || kind === 'key' ? stored(value as string | null) : (value as Value);
  });
}

function bound(kind: Column['kind'], value: Value): unknown {
  if (typeof kind === 'object') return kind.postgres.bind(value);
  return kind === 'text' || kind === 'key' ? storable(value as string | null) : value;
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
    const { kind } = column;
    if (kind !== 'bytes') {
      array(
        typeof kind === 'object' ? `${kind.postgres.type}[]` : ARRAYS[kind],
        identifier(column.name),
        rows.map((row) => bound(kind, row[i] ?? null)),
      );
      selected.push(identifier(column.name));
      continue;
    }
    const { starts, lengths, bytes } = packBodies(rows.map((row) => row[i] as Uint8Array));
    array('int[]', `${column.name}_start`, starts);
    array('int[]', `${column.name}_length`, lengths);
    const all = `$${values.push(bytes)}::bytea`;
    selected.push(`substring(${all} FROM ${column.name}_start FOR ${column.name}_length)`);
  }
  const names = columns.map((column) => identifier(column.name)).join(', ');
  const text = `
    INSERT INTO ${identifier(name)} (${names}) OVERRIDING SYSTEM VALUE
    SELECT ${selected.join(', ')} FROM unnest(${arrays.join(', ')}) AS given (${given.join(', ')})`;
  return { text, values };
}
