import type { Database } from './database.ts';
import { DatabaseOpenError } from './errors.ts';
import type { DatabaseObserver } from './observer.ts';
import { openSqlite } from './sqlite/open.ts';

/**
 * Opens the database that `url` names: `sqlite:<path>` or `sqlite::memory:`.
 * Throws DatabaseOpenError; the url itself is never shown, it can hold a password.
 * `observer` watches it at work.
 */
export function openDatabase(url: string, observer?: DatabaseObserver): Database {
  if (url.startsWith('sqlite:')) return openSqlite(url.slice('sqlite:'.length), observer);
  throw new DatabaseOpenError('The database URL names no engine of this version; it starts with sqlite:');
}
