import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Config } from '../../config/load.ts';
import type { Database } from '../../database/database.ts';
import { databaseAt } from '../../database/database-url.ts';
import { openDatabase } from '../../database/open-database.ts';
import { UsageError } from '../argv/usage-error.ts';

/** Opens the database of a configuration, which must exist, for a command. Rejects with UsageError or DatabaseOpenError. */
export async function openExisting({ settings }: Config, topic = 'deliveries'): Promise<Database> {
  const url = settings['database.url'];
  const { engine, place } = databaseAt(url);
  if (place === ':memory:') {
    throw misuse(topic, 'The database is sqlite::memory:, into which only the service can look');
  }
  // Opening would create it, and an empty list would hide that this is the wrong folder.
  if (engine === 'sqlite' && !place.startsWith('file:') && !existsSync(place)) {
    throw misuse(
      topic,
      `There is no database at ${resolve(place)}; go to the folder of the service, name it with --database-url, or start the service once`,
    );
  }
  return openDatabase(url, { mayMigrate: settings['database.migrate'] });
}

const misuse = (topic: string, problem: string) => new UsageError([problem], topic);
