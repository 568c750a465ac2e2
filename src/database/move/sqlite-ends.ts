import { existsSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { DatabaseOpenError } from '../../core/store-errors.ts';
import { MOVING, requireNothingPending } from '../migration-files.ts';
import { isBusy } from '../sqlite/busy.ts';
import { ADD_ZONES } from '../sqlite/delivery-zones.ts';
import { openExclusively } from '../sqlite/exclusive-connection.ts';
import { migrate, pendingMigrations } from '../sqlite/migrate.ts';
import { openFailure } from '../sqlite/open-failure.ts';
import { rewriteWal } from '../sqlite/writer/rewrite-wal.ts';
import type { MoveEnd, MoveTarget } from './move-end.ts';
import { inUse, MoveError } from './move-error.ts';
import { moveReads } from './sqlite-reads.ts';
import { type MovedRow, type MovedTable, movedTables } from './tables.ts';

/** So many batches are written before the log is folded back into the file. */
const FOLD_AFTER = 8;

/** Opens a file as the source of a move; nothing else can open it meanwhile. */
export function openSqliteSource(file: string): MoveEnd {
  return opened(file, 'source', (db) => {
    requireNothingPending(pendingMigrations(db), 'Run "portico migrate" on it first.');
    return { ...moveReads(db), [Symbol.asyncDispose]: async () => db.close() };
  });
}

/** Opens a file as the target of a move, or makes it; nothing else can open it meanwhile. */
export function openSqliteTarget(file: string): MoveTarget {
  return opened(file, 'target', (db) => {
    rewriteWal(db);
    migrate(db, 'expected');
    return targetOn(db);
  });
}

function opened<T>(file: string, which: 'source' | 'target', use: (db: DatabaseSync) => T): T {
  let db: DatabaseSync | undefined;
  try {
    if (which === 'source' && !file.startsWith('file:') && !existsSync(file)) {
      throw new DatabaseOpenError('there is no such file.');
    }
    db = openExclusively(file);
    return use(db);
  } catch (cause) {
    db?.close();
    if (isBusy(cause)) throw inUse(which);
    throw cause instanceof MoveError ? cause : openFailure(file, cause);
  }
}

function targetOn(db: DatabaseSync): MoveTarget {
  const reads = moveReads(db);
  const [mark] = db.prepare('SELECT name FROM migrations WHERE name GLOB ?').all(`${MOVING}*`);
  let written = 0;
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
      const own = 'DELETE FROM delivery_zones; UPDATE sqlite_sequence SET seq = 0;';
      db.exec(`BEGIN; ${tables.join(' ')} ${own} ${mark} COMMIT`);
    },
    last({ name, key }) {
      return Number(db.prepare(`SELECT max(${key}) AS last FROM ${name}`).get()?.last ?? 0);
    },
    write(table, rows) {
      store(db, table, rows);
      if (++written % FOLD_AFTER === 0) db.exec('PRAGMA wal_checkpoint(PASSIVE)');
    },
    setCounter({ name }, counter) {
      const raised = db
        .prepare('UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?')
        .run(counter, name);
      if (Number(raised.changes) > 0 || counter === 0) return;
      db.prepare('INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)').run(name, counter);
    },
    finish() {
      db.exec(ADD_ZONES);
      // All that was moved is in the file, and synced, before a service may come.
      db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
      db.exec(`DELETE FROM migrations WHERE name GLOB '${MOVING}*'`);
    },
    async [Symbol.asyncDispose]() {
      db.close();
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
