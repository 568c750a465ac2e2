import type { MaybePromise } from '../core/maybe-promise.ts';
import type { Database } from './database.ts';
import { databaseAt } from './database-url.ts';
import type { OpenOptions } from './open-options.ts';
import { openSqlite } from './sqlite/open.ts';

export { DatabaseOpenError, StoreUnavailableError } from '../core/store-errors.ts';
export type { Database } from './database.ts';
export {
  type DeliveryToEnqueue,
  type EnqueueStatement,
  enqueue,
  enqueueStatement,
  type PostgresClient,
  type SqliteConnection,
} from './enqueue.ts';

/**
 * Opens a database by its URL: `sqlite:<path>`, `sqlite::memory:` or `postgres://...`.
 * Fails with DatabaseOpenError; no message shows the URL, which can hold a password.
 */
export function openDatabase(url: `sqlite:${string}`, options?: OpenOptions): Database;
export function openDatabase(url: string, options?: OpenOptions): MaybePromise<Database>;
export function openDatabase(url: string, options: OpenOptions = {}): MaybePromise<Database> {
  const { engine, place } = databaseAt(url);
  return engine === 'sqlite' ? openSqlite(place, options) : openPostgres(place, options);
}

/** Imported on demand, so that only users of PostgreSQL load its driver. */
async function openPostgres(url: string, options: OpenOptions): Promise<Database> {
  const engine = await import('./postgres/open.ts');
  return engine.openPostgres(url, options);
}
