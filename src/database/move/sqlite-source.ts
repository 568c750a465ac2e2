import { requireNothingPending } from '../migration-files.ts';
import { pendingMigrations } from '../sqlite/migrate.ts';
import type { MoveEnd } from './move-end.ts';
import { moveReads, openEnd } from './sqlite-reads.ts';

/** Opens a file as the source of a move, locked against all other connections. */
export function openSqliteSource(file: string): MoveEnd {
  return openEnd(file, 'source', (db) => {
    requireNothingPending(pendingMigrations(db), 'Run "portico migrate" on it first.');
    return { ...moveReads(db), [Symbol.asyncDispose]: async () => db.close() };
  });
}
