import { existsSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { DatabaseOpenError } from '../../core/errors.ts';
import { requireNothingPending } from '../migration-files.ts';
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
  movedTables,
  ROW_BYTES,
  type Value,
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
    return engineOn(db);
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

function engineOn(db: DatabaseSync): MoveEngine {
  let batches = 0;
  const value = (sql: string) => Object.values(db.prepare(sql).get() ?? {})[0];
  return {
    name: 'sqlite',
    value,
    commit: (...statements) => inTransaction(db, () => db.exec(statements.join('; '))),
    read: (table, after) => readBatch(db, table, after),
    write(table, rows) {
      store(db, table, rows);
      if (++batches % CHECKPOINT_INTERVAL === 0) db.exec('PRAGMA wal_checkpoint(PASSIVE)');
    },
    counter: ({ name, key }) =>
      Number(
        value(`SELECT max((SELECT coalesce(max(${key}), 0) FROM ${name}),
          (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = '${name}'))`),
      ),
    setCounter({ name }, counter) {
      const raise = db.prepare('UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?');
      if (Number(raise.run(counter, name).changes) > 0) return;
      db.prepare('INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)').run(name, counter);
    },
    // The exclusive lock excludes other processes.
    checkAlone() {},
    clear: [
      ...movedTables.map(({ name }) => `DELETE FROM ${name}`).reverse(),
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
    // All rows must be in the file and synced before the mark is removed.
    settle: () => db.exec('PRAGMA wal_checkpoint(TRUNCATE)'),
    [Symbol.asyncDispose]: async () => db.close(),
  };
}

function readBatch(db: DatabaseSync, { name, key, columns }: MovedTable, after: number): readonly MovedRow[] {
  const names = columns.map(({ name }) => name).join(', ');
  const statement = db.prepare(`SELECT ${names} FROM ${name} WHERE ${key} > ? ORDER BY ${key}`);
  statement.setReturnArrays(true);
  const batch: MovedRow[] = [];
  let bytes = 0;
  for (const row of statement.iterate(after) as Iterable<unknown>) {
    const values = row as readonly Value[];
    batch.push(values);
    bytes += values.reduce<number>((sum, value) => sum + sizeOf(value), ROW_BYTES);
    if (bytes >= BATCH.bytes || batch.length === BATCH.rows) break;
  }
  return batch;
}

function sizeOf(value: Value): number {
  if (typeof value === 'string') return value.length;
  return value instanceof Uint8Array ? value.byteLength : 0;
}

function store(db: DatabaseSync, { name, columns }: MovedTable, rows: readonly MovedRow[]): void {
  const names = columns.map(({ name }) => name).join(', ');
  const marks = columns.map(() => '?').join(', ');
  const insert = db.prepare(`INSERT INTO ${name} (${names}) VALUES (${marks})`);
  inTransaction(db, () => {
    for (const row of rows) insert.run(...row);
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
