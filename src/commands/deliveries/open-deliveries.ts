import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Config, loadConfig } from '../../config/load.ts';
import type { Database } from '../../database/database.ts';
import { databaseAt } from '../../database/database-url.ts';
import { openDatabase } from '../../database/open-database.ts';
import { UsageError } from '../usage-error.ts';

/** The configuration that a service called with the same words would have. Fails with ConfigError. */
export function readConfiguration(argv: readonly string[]): Promise<Config> {
  return loadConfig({ argv, env: process.env, cwd: process.cwd() });
}

/** Opens the database of a configuration, which must be there already. Fails with UsageError or DatabaseOpenError. */
export async function openExisting({ settings }: Config): Promise<Database> {
  const url = settings['database.url'];
  const { engine, place } = databaseAt(url);
  if (place === ':memory:') {
    throw new UsageError(
      ['The database is sqlite::memory:, into which only the service can look'],
      'deliveries',
    );
  }
  // A list that is empty because the folder is the wrong one would tell nothing.
  if (engine === 'sqlite' && !place.startsWith('file:') && !existsSync(place)) {
    throw new UsageError(
      [
        `There is no database at ${resolve(place)}; go to the folder of the service, name it with --database-url, or start the service once`,
      ],
      'deliveries',
    );
  }
  return openDatabase(url, { mayMigrate: settings['database.migrate'] });
}
