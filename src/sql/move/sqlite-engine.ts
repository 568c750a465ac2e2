import { existsSync } from 'node:fs';
import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { DatabaseOpenError } from '../../core/errors.ts';
import type { Value } from '../../relations/relation.ts';
import { requireNothingPending } from '../migration-files.ts';
import { sqliteSession } from '../schema/sqlite-session.ts';
import { identifier, textLiteral } from '../schema/tables.ts';
import { openExclusiveConnection } from '../sqlite/connection.ts';
import { migrate, openFailure, pendingMigrations } from '../sqlite/migrate.ts';
import { isBusy } from '../sqlite/service-lock.ts';
import { ADD_ZONES, COUNT_TAIL } from '../sqlite-inbox/delivery-zones.ts';
import { rewriteWal } from '../sqlite-writer/checkpointer.ts';
import {
  BATCH,
  inUse,
  type MovedRow,
  type MovedTable,
  type MoveEngine,
  MoveError,
  ROW_BYTES,
  readParts,
} from './tables.ts';

/**
 * Opens a file as one end of a move, locked against all other connections; a target is created if it is missing.
 * Throws MoveError if the file is in use, or DatabaseOpenError.
 */
export function openSqliteEngine(file: string, which: 'source' | 'target'): MoveEngine {
  try {
    if (which === 'source' && !file.startsWith('file:') && !existsSync(file)) {
      throw new DatabaseOpenError('there is no such file.');
    }
    using opening = new DisposableStack();
    const db = opening.use(openExclusiveConnection(file));
    if (which === 'source') {
      requireNothingPending(pendingMigrations(db), 'Run "portico migrate" on it first.');
    } else {
      rewriteWal(db);
      migrate(db, { moving: 'expected' });
    }
    opening.move();
    return engineOn(db, which);
  } catch (cause) {
    if (isBusy(cause)) throw inUse(which);
    throw cause instanceof MoveError ? cause : openFailure(file, cause);
  }
}

/** The target has no leases, so only the first open job of each order key is unblocked. */
const SET_HEADS = `
  UPDATE jobs SET blocked = 1
  WHERE status = 'open' AND order_key IS NOT NULL AND EXISTS (
    SELECT 1 FROM jobs AS earlier
    WHERE earlier.target = jobs.target AND earlier.order_key = jobs.order_key AND earlier.status = 'open'
      AND earlier.seq < jobs.seq)`;
/** Number of batches between two checkpoints of the WAL. */
const CHECKPOINT_INTERVAL = 8;

function engineOn(db: DatabaseSync, which: 'source' | 'target'): MoveEngine {
  let batches = 0;
  const value = (sql: string) => Object.values(db.prepare(sql).get() ?? {})[0];
  return {
    name: 'sqlite',
    session: sqliteSession(db),
    begin() {
      if (which === 'target') db.exec('PRAGMA foreign_keys=OFF');
    },
    hasTable: (name) => db.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(name) !== undefined,
    value,
    commit: (...statements) => inTransaction(db, () => db.exec(statements.join('; '))),
    read: (table, after) => readBatch(db, table, after),
    last: (table) => lastKey(db, table),
    write(table, rows) {
      store(db, table, rows);
      if (++batches % CHECKPOINT_INTERVAL === 0) db.exec('PRAGMA wal_checkpoint(PASSIVE)');
    },
    counter: ({ name, key }) =>
      Number(
        value(`SELECT max((SELECT coalesce(max(${identifier(key[0] ?? '')}), 0) FROM ${identifier(name)}),
          (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = ${textLiteral(name)}))`),
      ),
    setCounter({ name }, counter) {
      // SQLite would store a JavaScript number as a double.
      const last = BigInt(counter);
      const raise = db.prepare('UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?');
      if (Number(raise.run(last, name).changes) > 0) return;
      db.prepare('INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)').run(name, last);
    },
    // The exclusive lock excludes other processes.
    checkAlone() {},
    clear: (tables) => [
      ...tables.map(({ name }) => `DELETE FROM ${identifier(name)}`).reverse(),
      'UPDATE user_feed SET last = 0',
      'DELETE FROM delivery_zones',
      'UPDATE inbox_size SET bytes = 0',
      'UPDATE sqlite_sequence SET seq = 0',
    ],
    derive: [
      SET_HEADS,
      COUNT_TAIL,
      ADD_ZONES,
      'UPDATE user_feed SET last = (SELECT coalesce(max(id), 0) FROM users)',
    ],
    settle() {
      const [broken] = db.prepare('SELECT "table" FROM pragma_foreign_key_check LIMIT 1').all();
      if (broken !== undefined) {
        throw new MoveError(
          `Rows of ${broken.table} refer to rows that do not exist. Correct them in the source and start over with --restart.`,
        );
      }
      // All rows must be in the file and synced before the mark is removed.
      db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    },
    [Symbol.asyncDispose]: async () => db.close(),
  };
}

function readBatch(db: DatabaseSync, table: MovedTable, after: MovedRow | undefined): readonly MovedRow[] {
  const { values, from, order } = readParts('sqlite', table, after !== undefined);
  const statement = db.prepare(`SELECT ${values} FROM ${from} ORDER BY ${order}`);
  statement.setReturnArrays(true);
  const key = after === undefined ? [] : bound(table, after.slice(0, table.key.length));
  const batch: MovedRow[] = [];
  let bytes = 0;
  for (const row of statement.iterate(...key) as Iterable<unknown>) {
    const values = moved(table, row as readonly unknown[]);
    batch.push(values);
    bytes += values.reduce<number>((sum, value) => sum + sizeOf(value), ROW_BYTES);
    if (bytes >= BATCH.bytes || batch.length === BATCH.rows) break;
  }
  return batch;
}

function lastKey(db: DatabaseSync, table: MovedTable): MovedRow | undefined {
  const key = { ...table, columns: table.columns.slice(0, table.key.length) };
  const { values, from, descending } = readParts('sqlite', key, false);
  const statement = db.prepare(`SELECT ${values} FROM ${from} ORDER BY ${descending} LIMIT 1`);
  statement.setReturnArrays(true);
  const [last] = statement.all() as unknown as readonly (readonly unknown[])[];
  return last === undefined ? undefined : moved(key, last);
}

function moved({ columns }: MovedTable, row: readonly unknown[]): MovedRow {
  return row.map((value, i) => {
    const kind = columns[i]?.kind;
    return typeof kind === 'object' ? kind.sqlite.read(value) : (value as Value);
  });
}

function bound({ columns }: MovedTable, values: MovedRow): readonly SQLInputValue[] {
  return values.map((value, i) => {
    const kind = columns[i]?.kind;
    return typeof kind === 'object' ? kind.sqlite.bind(value) : (value as SQLInputValue);
  });
}

function sizeOf(value: Value): number {
  if (typeof value === 'string') return value.length;
  return value instanceof Uint8Array ? value.byteLength : 0;
}

function store(db: DatabaseSync, table: MovedTable, rows: readonly MovedRow[]): void {
  const names = table.columns.map(({ name }) => identifier(name)).join(', ');
  const marks = table.columns.map(() => '?').join(', ');
  const insert = db.prepare(`INSERT INTO ${identifier(table.name)} (${names}) VALUES (${marks})`);
  inTransaction(db, () => {
    for (const row of rows) insert.run(...bound(table, row));
  });
}

function inTransaction(db: DatabaseSync, run: () => void): void {
  db.exec('BEGIN');
  try {
    run();
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}
