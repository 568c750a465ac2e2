import { DatabaseOpenError } from '../../core/store-errors.ts';
import { databaseAt } from '../database-url.ts';
import { pathOf } from '../sqlite/open-failure.ts';
import { BackupError } from './backup-error.ts';

/**
 * The file of an SQLite database, which is what Portico backs up. Throws BackupError for another database; `postgres` is
 * the command to use there, as it is written in a shell.
 */
export function backupFileOf(url: string, postgres: string): string {
  const { engine, place } = databaseAt(url);
  if (engine === 'postgres') {
    throw new BackupError(
      `The database is on PostgreSQL, which has tools of its own for that. With its URL in DATABASE_URL, run:\n\n  ${postgres}\n`,
    );
  }
  if (place === ':memory:') {
    throw new DatabaseOpenError('The database is sqlite::memory:, which ends with its service.');
  }
  return pathOf(place);
}
