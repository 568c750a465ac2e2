import type { MaybePromise } from '../users/maybe-promise.ts';
import type { Database } from './database.ts';
import { DatabaseOpenError } from './errors.ts';
import type { DatabaseObserver } from './observer.ts';
import { openSqlite } from './sqlite/open.ts';

const SQLITE = 'sqlite:';

/**
 * Opens the database that `url` names: `sqlite:<path>`, `sqlite::memory:` or `postgres://...`.
 * Fails with DatabaseOpenError; the url itself is never shown, it can hold a password.
 * `observer` watches it at work.
 */
export function openDatabase(url: `${typeof SQLITE}${string}`, observer?: DatabaseObserver): Database;
export function openDatabase(url: string, observer?: DatabaseObserver): MaybePromise<Database>;
export function openDatabase(url: string, observer?: DatabaseObserver): MaybePromise<Database> {
  if (url.startsWith(SQLITE)) return openSqlite(url.slice(SQLITE.length), observer);
  if (/^postgres(?:ql)?:\/\//.test(url)) return openPostgres(url, observer);
  throw new DatabaseOpenError(
    'The database URL names no engine of this version; it starts with sqlite: or postgres://',
  );
}

/** The driver is loaded only by those who need it. */
async function openPostgres(url: string, observer?: DatabaseObserver): Promise<Database> {
  const engine = await import('./postgres/open.ts');
  return engine.openPostgres(url, observer);
}
