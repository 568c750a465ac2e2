import { existsSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { DatabaseOpenError } from '../../core/store-errors.ts';
import { requireNothingPending } from '../migration-files.ts';
import { isBusy } from '../sqlite/busy.ts';
import { openExclusiveConnection } from '../sqlite/connection.ts';
import { pendingMigrations } from '../sqlite/migrate.ts';
import { openFailure } from '../sqlite/open-failure.ts';
import { MAX_KEY, storedKey } from '../stored-key.ts';
import type { MoveEnd } from './move-end.ts';
import { inUse, MoveError } from './move-error.ts';
import { BATCH, type Column, type MovedRow, type MovedTable, ROW_BYTES, type Value } from './tables.ts';

/** Opens a file as the source of a move, locked against all other connections. */
export function openSqliteSource(file: string): MoveEnd {
  return openEnd(file, 'source', (db) => {
    requireNothingPending(pendingMigrations(db), 'Run "portico migrate" on it first.');
    return moveReads(db);
  });
}

/** Opens one end of a move under an exclusive lock. Throws MoveError while the file is in use, or DatabaseOpenError. */
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
    // The exclusive lock keeps other processes out.
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
    const values = (row as readonly Value[]).map((value, i) => moved(value, columns[i]));
    batch.push(values);
    bytes += values.reduce<number>((sum, value) => sum + sizeOf(value), ROW_BYTES);
    if (bytes >= BATCH.bytes || batch.length === BATCH.rows) break;
  }
  return batch;
}

/** Older versions stored long keys in full; they are moved as digests. */
function moved(value: Value, column: Column | undefined): Value {
  const isLong = column?.kind === 'key' && typeof value === 'string' && value.length > MAX_KEY;
  return isLong ? storedKey(value) : value;
}

function sizeOf(value: Value): number {
  if (typeof value === 'string') return value.length;
  return value instanceof Uint8Array ? value.byteLength : 0;
}
