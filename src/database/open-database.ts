import type { MaybePromise } from '../core/maybe-promise.ts';
import type { Database } from './database.ts';
import { engineOf } from './engine-of.ts';
import type { OpenOptions } from './open-options.ts';
import { openSqlite } from './sqlite/open.ts';

export { DatabaseOpenError, StoreUnavailableError } from '../core/store-errors.ts';
export type { Database } from './database.ts';

/**
 * Opens the database that `url` names: `sqlite:<path>`, `sqlite::memory:` or `postgres://...`.
 * Fails with DatabaseOpenError; the url itself is never shown, it can hold a password.
 */
export function openDatabase(url: `sqlite:${string}`, options?: OpenOptions): Database;
export function openDatabase(url: string, options?: OpenOptions): MaybePromise<Database>;
export function openDatabase(url: string, options: OpenOptions = {}): MaybePromise<Database> {
  const { engine, place } = engineOf(url);
  return engine === 'sqlite' ? openSqlite(place, options) : openPostgres(place, options);
}

/** The driver is loaded only by those who need it. */
async function openPostgres(url: string, options: OpenOptions): Promise<Database> {
  const engine = await import('./postgres/open.ts');
  return engine.openPostgres(url, options);
}
