import { setTimeout as sleep } from 'node:timers/promises';
import type { Relation } from '../../relations/relation.ts';
import { UNRECORDED, withChangeLog } from '../changes/change-triggers.ts';
import { withMigrationLock } from '../postgres/migrate.ts';
import { type Connection, isLocked, isTransient, type Row, sqlState } from '../postgres-pool/connection.ts';
import { diffTables } from './diff.ts';
import { lossQuery, requireUnreferenced } from './drop.ts';
import { SchemaError } from './migrate.ts';
import { readPostgresCatalogue } from './postgres-catalogue.ts';
import { planPostgres } from './postgres-plan.ts';
import type { Loss, SchemaSession, Step, ValueFile } from './steps.ts';
import { fingerprintOf, identifier, textLiteral } from './tables.ts';

/**
 * How long a statement waits for a lock, in milliseconds. All later statements on the table wait behind it, and
 * those of a service at most 400 ms, so it gives up before that and tries again.
 */
const LOCK_TIMEOUT = 200;
/** The limit for statements that make nobody wait while they wait, such as for old transactions to end. */
const PATIENT_TIMEOUT = 600_000;
const PATIENT =
  /^(?:CREATE (?:UNIQUE )?INDEX CONCURRENTLY|DROP INDEX CONCURRENTLY|ALTER TABLE .* VALIDATE CONSTRAINT)/;
/** The states of errors whose cause are values that no count of violations has foreseen, such as new ones. */
const ROWS = /^2[23]/;
/** Attempts to get a lock, and the pause after each, in milliseconds. */
const ATTEMPTS = 150;
const PAUSE = 300;

/** Migrates relations of a schema through a connection on which nothing else runs meanwhile. */
export function postgresSession(connection: Connection): SchemaSession {
  const rows = (text: string): Promise<readonly Row[]> => connection.run({ text }, []);
  return {
    engine: 'postgres',
    async plan(declared) {
      const catalogue = await readPostgresCatalogue(connection);
      const diff = diffTables(declared, catalogue);
      const steps = withChangeLog('postgres', diff, catalogue, planPostgres(diff));
      return { steps, undeclared: diff.undeclared };
    },
    rows,
    async rowsOf(table) {
      const [row] = await rows(
        `SELECT CASE WHEN reltuples < 0 THEN pg_relation_size(oid) / 100 ELSE reltuples END::bigint FROM pg_class WHERE oid = to_regclass(${textLiteral(identifier(table))})`,
      );
      return Number(row?.[0] ?? 0);
    },
    async conflict(fingerprint, before) {
      const others = await countOtherDeclarations(connection, fingerprint);
      if (others === 0) return undefined;
      const running = others === 1 ? '1 running process declares' : `${others} running processes declare`;
      const remedy =
        before === 'drop'
          ? 'Start all processes with this declaration first, or stop the others.'
          : 'Stop it first; a process with this declaration starts after the migration.';
      return `${running} other relations and would fail after this. ${others === 1 ? remedy : remedy.replace('Stop it', 'Stop them')}`;
    },
    exclusively: (work) => withMigrationLock(connection, async () => work()),
    drop: (loss, file) => withLimits(connection, () => drop(connection, loss, file)),
    async apply(step) {
      try {
        await withLimits(connection, () => apply(connection, step));
      } catch (cause) {
        const { message } = cause as Error;
        throw ROWS.test(sqlState(cause) ?? '')
          ? new SchemaError(`${step.table}: rows do not fit: ${message}`, { cause })
          : cause;
      }
    },
  };
}

/** Without a limit on the time of statements, which may read all rows. */
async function withLimits<T>(connection: Connection, work: () => Promise<T>): Promise<T> {
  const names = ['statement_timeout', 'lock_timeout'] as const;
  const settings = names.map((name) => `current_setting('${name}')`).join(', ');
  const [before = []] = await connection.run({ text: `SELECT ${settings}` }, []);
  const set = (values: readonly unknown[]) =>
    connection.run(
      { text: `SELECT set_config('statement_timeout', $1, false), set_config('lock_timeout', $2, false)` },
      values,
    );
  await set(['0', String(LOCK_TIMEOUT)]);
  try {
    return await work();
  } finally {
    if (!connection.lost) await set(before);
  }
}

async function apply(connection: Connection, { table, sql, fill }: Step): Promise<void> {
  // Once more than needed: the constraint that comes next refuses changes of rows without a value.
  if (fill !== undefined) await fillColumn(connection, table, fill.column, fill.value);
  for (const [nth, text] of sql.entries()) {
    const limit = PATIENT.test(text) ? PATIENT_TIMEOUT : LOCK_TIMEOUT;
    await connection.run({ text: `SELECT set_config('lock_timeout', $1, false)` }, [String(limit)]);
    await retried(connection, text);
    if (fill?.after === nth + 1) await fillColumn(connection, table, fill.column, fill.value);
  }
}

/** Runs a text; without values it may have several statements, which are one transaction. */
async function retried(connection: Connection, text: string): Promise<void> {
  return untilUnlocked(text, async () => {
    await connection.run({ text }, undefined);
  });
}

async function untilUnlocked(statement: string, work: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!(isLocked(error) || isTransient(error))) throw error;
      if (attempt === ATTEMPTS)
        throw new SchemaError(
          `Another transaction keeps its lock on the table for too long. End it, or run the migration again when it has ended; what was done stays done. The statement that waited: ${statement}`,
          { cause: error },
        );
      await sleep(PAUSE);
    }
  }
}

/** Rows that a drop writes to its file at a time. */
const FETCHED = 1_000;

/** Locks out writers until the end; the drop itself waits for readers. */
async function drop(connection: Connection, loss: Loss, file: ValueFile): Promise<void> {
  const tables = await readPostgresCatalogue(connection);
  const current = tables.find(({ name }) => name === loss.table);
  if (current === undefined) return;
  requireUnreferenced(tables, loss);
  const run = (text: string) => connection.run({ text }, undefined);
  const table = identifier(loss.table);
  const locking = (text: string) =>
    untilUnlocked(text, async () => {
      await run('SAVEPOINT unlocked');
      try {
        await run(text);
      } catch (error) {
        if (!connection.lost) await run('ROLLBACK TO unlocked');
        throw error;
      }
    });
  await run('BEGIN');
  try {
    await locking(`LOCK TABLE ${table} IN SHARE ROW EXCLUSIVE MODE`);
    await run(`DECLARE lost CURSOR FOR ${lossQuery('postgres', current, loss)}`);
    for (;;) {
      const rows = await connection.run({ text: `FETCH ${FETCHED} FROM lost` }, undefined);
      if (rows.length === 0) break;
      file.write(rows.map(([line]) => String(line)));
    }
    await run('CLOSE lost');
    const { column } = loss;
    await locking(
      column === undefined ? `DROP TABLE ${table}` : `ALTER TABLE ${table} DROP COLUMN ${identifier(column)}`,
    );
    file.complete();
    await run('COMMIT');
  } catch (error) {
    if (!connection.lost) await run('ROLLBACK');
    throw error;
  }
}

/** Pages of 8 KiB per batch: some thousand rows, so that no batch holds their locks for long. */
const BATCH_PAGES = 64;

/** Gives rows without a value one, in batches in the order of the file. As in a rebuild on SQLite, that writes no events. */
async function fillColumn(
  connection: Connection,
  table: string,
  column: string,
  value: string,
): Promise<void> {
  const name = textLiteral(identifier(table));
  const size = `SELECT pg_relation_size(${name}::regclass) / current_setting('block_size')::int`;
  const [row] = await connection.run({ text: size }, []);
  // Rows that a batch writes at the end have a value, and so do rows that are new.
  const pages = Number(row?.[0]);
  for (let page = 0; page < pages; page += BATCH_PAGES) {
    await retried(
      connection,
      `SELECT set_config(${textLiteral(UNRECORDED)}, 'on', true);
       UPDATE ${identifier(table)} SET ${identifier(column)} = ${value}
       WHERE ctid >= '(${page},0)' AND ctid < '(${page + BATCH_PAGES},0)' AND ${identifier(column)} IS NULL`,
    );
  }
}

/** Processes on different schemas of a database do not know each other. */
const GROUP = `hashtext('portico relations ' || current_schema()::regnamespace::oid::text)`;

/**
 * Tells migrations what this process declares, by a shared lock that never blocks: it ends with the connection,
 * so it cannot outlive the process. Repeat it on each new connection.
 */
export async function announceDeclaration(
  connection: Connection,
  relations: readonly Relation[],
): Promise<void> {
  const text = `SELECT pg_advisory_lock_shared(${GROUP}, $1::int)`;
  await connection.run({ text }, [fingerprintOf(relations)]);
}

/** The number of processes that declare other relations than those with this fingerprint. */
async function countOtherDeclarations(connection: Connection, fingerprint: number): Promise<number> {
  const text = `
    SELECT count(DISTINCT pid) FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 2 AND classid = ${GROUP}::oid AND objid <> $1::int::oid
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
  const [row] = await connection.run({ text }, [fingerprint]);
  return Number(row?.[0]);
}
