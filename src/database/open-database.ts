import type { Database } from './database.ts';
import { DatabaseOpenError } from './errors.ts';
import { openSqlite } from './sqlite/open.ts';

/**
 * Opens the database that `url` names: `sqlite:<path>` or `sqlite::memory:`.
 * Throws DatabaseOpenError; the url itself is never shown, it can hold a password.
 */
export function openDatabase(url: string): Database {
  if (url.startsWith('sqlite:')) return openSqlite(url.slice('sqlite:'.length));
  throw new DatabaseOpenError('The database URL names no engine of this version; it starts with sqlite:');
}
