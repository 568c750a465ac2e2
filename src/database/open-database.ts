import type { MaybePromise } from '../users/maybe-promise.ts';
import type { Database } from './database.ts';
import { DatabaseOpenError } from './errors.ts';
import type { DatabaseObserver } from './observer.ts';
import type { Replica } from './replica.ts';
import { openSqlite } from './sqlite/open.ts';

export type { Database } from './database.ts';
export { DatabaseOpenError, StoreUnavailableError } from './errors.ts';

const SQLITE = 'sqlite:';

/**
 * Opens the database that `url` names: `sqlite:<path>`, `sqlite::memory:` or `postgres://...`.
 * Fails with DatabaseOpenError; the url itself is never shown, it can hold a password.
 * `observer` watches it at work; `replica` is for PostgreSQL.
 */
export function openDatabase(url: `${typeof SQLITE}${string}`, observer?: DatabaseObserver): Database;
export function openDatabase(
  url: string,
  observer?: DatabaseObserver,
  replica?: Replica,
): MaybePromise<Database>;
export function openDatabase(
  url: string,
  observer?: DatabaseObserver,
  replica?: Replica,
): MaybePromise<Database> {
  if (url.startsWith(SQLITE)) return openSqlite(url.slice(SQLITE.length), observer);
  if (/^postgres(?:ql)?:\/\//.test(url)) return openPostgres(url, observer, replica);
  throw new DatabaseOpenError(
    'The database URL names no engine of this version; it starts with sqlite: or postgres://',
  );
}

/** The driver is loaded only by those who need it. */
async function openPostgres(url: string, observer?: DatabaseObserver, replica?: Replica): Promise<Database> {
  const engine = await import('./postgres/open.ts');
  return engine.openPostgres(url, observer, replica);
}
