import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Config } from '../config/load.ts';
import type { Database } from '../database/database.ts';
import { databaseAt } from '../database/database-url.ts';
import { openDatabase } from '../database/open-database.ts';
import { UsageError } from './argv/usage-error.ts';

/**
 * Opens the database of a configuration, which must exist, for a command that is `topic`. Rejects with UsageError or
 * DatabaseOpenError.
 */
export async function openExisting({ settings }: Config, topic: string): Promise<Database> {
  const misuse = (problem: string) => new UsageError([problem], topic);
  const url = settings['database.url'];
  const { engine, place } = databaseAt(url);
  if (place === ':memory:') {
    throw misuse('The database is sqlite::memory:, into which only the service can look');
  }
  // Opening would create it, and an empty list would hide that this is the wrong folder.
  if (engine === 'sqlite' && !place.startsWith('file:') && !existsSync(place)) {
    throw misuse(
      `There is no database at ${resolve(place)}; go to the folder of the service, name it with --database-url, or start the service once`,
    );
  }
  // A command answers nobody meanwhile.
  return openDatabase(url, { mayMigrate: settings['database.migrate'], readThread: false });
}
