import type { MaybePromise } from '../users/maybe-promise.ts';
import type { Database } from './database.ts';
import { engineOf } from './engine-of.ts';
import type { DatabaseObserver } from './observer.ts';
import type { openPostgres as openPostgresDatabase } from './postgres/open.ts';
import type { Replica } from './replica.ts';
import { openSqlite } from './sqlite/open.ts';

export type { Database } from './database.ts';
export { DatabaseOpenError, StoreUnavailableError } from './errors.ts';

/**
 * Opens the database that `url` names: `sqlite:<path>`, `sqlite::memory:` or `postgres://...`.
 * Fails with DatabaseOpenError; the url itself is never shown, it can hold a password.
 * `observer` watches it at work; `replica` is for PostgreSQL. Without `mayMigrate` the schema must be up to date already.
 */
export function openDatabase(url: `sqlite:${string}`, observer?: DatabaseObserver): Database;
export function openDatabase(
  url: string,
  observer?: DatabaseObserver,
  replica?: Replica,
  mayMigrate?: boolean,
): MaybePromise<Database>;
export function openDatabase(
  url: string,
  observer?: DatabaseObserver,
  replica?: Replica,
  mayMigrate = true,
): MaybePromise<Database> {
  const { engine, place } = engineOf(url);
  if (engine === 'sqlite') return openSqlite(place, observer, mayMigrate);
  return openPostgres(place, observer, replica, mayMigrate);
}

/** The driver is loaded only by those who need it. */
async function openPostgres(
  ...[url, observer, replica, mayMigrate]: Parameters<typeof openPostgresDatabase>
): Promise<Database> {
  const engine = await import('./postgres/open.ts');
  return engine.openPostgres(url, observer, replica, mayMigrate);
}
