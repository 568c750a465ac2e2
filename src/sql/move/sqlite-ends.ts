import { existsSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { DatabaseOpenError } from '../../core/errors.ts';
import { MOVING, requireNothingPending } from '../migration-files.ts';
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
  type MoveEnd,
  MoveError,
  type MoveTarget,
  movedTables,
  ROW_BYTES,
  type Value,
} from './tables.ts';

/** Opens a file as the source of a move, locked against all other connections. */
export function openSqliteSource(file: string): MoveEnd {
  return openEnd(file, 'source', (db) => {
    requireNothingPending(pendingMigrations(db), 'Run "portico migrate" on it first.');
    return moveReads(db);
  });
}

/**
 * Opens one end of a move under an exclusive lock. Throws MoveError if the file is in use, or
 * DatabaseOpenError.
 */
export function openEnd<T extends object>(
  file: string,
  which: 'source' | 'target',
  use: (db: DatabaseSync) => T,
): T & AsyncDisposable {
  try {
    if (which === 'source' && !file.startsWith('file:') && !existsSync(file)) {
      throw new DatabaseOpenError('there is no such file.');
    }
    using opening = new DisposableStack();
    const db = opening.use(openExclusiveConnection(file));
    const end = use(db);
    opening.move();
    return { ...end, [Symbol.asyncDispose]: async () => db.close() };
  } catch (cause) {
    if (isBusy(cause)) throw inUse(which);
    throw cause instanceof MoveError ? cause : openFailure(file, cause);
  }
}

/** The methods that source and target share. */
export function moveReads(db: DatabaseSync): Omit<MoveEnd, keyof AsyncDisposable> {
  const [first] = db.prepare('SELECT applied_at FROM migrations ORDER BY name LIMIT 1').all();
  return {
    origin: `sqlite-${first?.applied_at}`,
    count: ({ name }) => Number(db.prepare(`SELECT count(*) AS count FROM ${name}`).get()?.count),
    counter({ name, key }) {
      const row = db
        .prepare(`SELECT max((SELECT coalesce(max(${key}), 0) FROM ${name}),
          (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = ?)) AS last`)
        .get(name);
      return Number(row?.last ?? 0);
    },
    // The exclusive lock excludes other processes.
    checkAlone() {},
    read: (table, after) => readBatch(db, table, after),
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

/** The target has no leases, so only the first open job of each order key is unblocked. */
const SET_HEADS = `
  UPDATE jobs SET blocked = 1
  WHERE status = 'open' AND order_key IS NOT NULL AND EXISTS (
    SELECT 1 FROM jobs AS earlier
    WHERE earlier.target = jobs.target AND earlier.order_key = jobs.order_key AND earlier.status = 'open'
      AND earlier.seq < jobs.seq)`;
/** Number of batches between two checkpoints of the WAL. */
const CHECKPOINT_INTERVAL = 8;

/** Opens or creates a file as the target of a move, locked against all other connections. */
export function openSqliteTarget(file: string): MoveTarget {
  return openEnd(file, 'target', (db) => {
    rewriteWal(db);
    migrate(db, { moving: 'expected' });
    return targetOn(db);
  });
}

function targetOn(db: DatabaseSync): Omit<MoveTarget, keyof AsyncDisposable> {
  const reads = moveReads(db);
  const [mark] = db.prepare('SELECT name FROM migrations WHERE name GLOB ?').all(`${MOVING}*`);
  let batches = 0;
  return {
    ...reads,
    unfinished: mark === undefined ? undefined : String(mark.name).slice(MOVING.length),
    begin(origin) {
      db.prepare('INSERT INTO migrations (name, applied_at) VALUES (?, ?)').run(
        `${MOVING}${origin}`,
        Date.now(),
      );
    },
    clear() {
      const tables = movedTables.map(({ name }) => `DELETE FROM ${name};`).reverse();
      const mark = `DELETE FROM migrations WHERE name GLOB '${MOVING}*';`;
      const own =
        'UPDATE user_feed SET last = 0; DELETE FROM delivery_zones; UPDATE inbox_size SET bytes = 0; UPDATE sqlite_sequence SET seq = 0;';
      db.exec(`BEGIN; ${tables.join(' ')} ${own} ${mark} COMMIT`);
    },
    last({ name, key }) {
      return Number(db.prepare(`SELECT max(${key}) AS last FROM ${name}`).get()?.last ?? 0);
    },
    write(table, rows) {
      store(db, table, rows);
      if (++batches % CHECKPOINT_INTERVAL === 0) db.exec('PRAGMA wal_checkpoint(PASSIVE)');
    },
    setCounter({ name }, counter) {
      const raised = db
        .prepare('UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?')
        .run(counter, name);
      if (Number(raised.changes) > 0 || counter === 0) return;
      db.prepare('INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)').run(name, counter);
    },
    finish() {
      db.exec(
        `BEGIN; ${SET_HEADS}; ${COUNT_TAIL}; ${ADD_ZONES}; UPDATE retention_cursors SET at = 0, seq = 0; COMMIT`,
      );
      // The moved users are not new changes, so followers start here.
      db.exec(`BEGIN; DELETE FROM user_events; DELETE FROM user_relay;
        INSERT INTO user_events (type, at, user_id, name, email) VALUES ('start', ${Date.now()}, 0, '', '');
        UPDATE user_feed SET last = (SELECT coalesce(max(id), 0) FROM users); COMMIT`);
      // All rows must be in the file and synced before the mark is removed.
      db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
      db.exec(`DELETE FROM migrations WHERE name GLOB '${MOVING}*'`);
    },
  };
}

function store(db: DatabaseSync, { name, columns }: MovedTable, rows: readonly MovedRow[]): void {
  const names = columns.map(({ name }) => name).join(', ');
  const marks = columns.map(() => '?').join(', ');
  const insert = db.prepare(`INSERT INTO ${name} (${names}) VALUES (${marks})`);
  db.exec('BEGIN');
  try {
    for (const row of rows) insert.run(...row);
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}
