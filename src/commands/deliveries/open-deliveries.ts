import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Config, loadConfig } from '../../config/load.ts';
import type { Database } from '../../database/database.ts';
import { openDatabase } from '../../database/open-database.ts';
import { UsageError } from '../usage-error.ts';

const FILE = 'sqlite:';

/** The configuration that a service called with the same words would have. Fails with ConfigError. */
export function readConfiguration(argv: readonly string[]): Promise<Config> {
  return loadConfig({ argv, env: process.env, cwd: process.cwd() });
}

/** Opens the database of a configuration, which must be there already. Fails with UsageError or DatabaseOpenError. */
export async function openExisting({ settings }: Config): Promise<Database> {
  const url = settings['database.url'];
  if (url === 'sqlite::memory:') {
    throw new UsageError(
      ['The database is sqlite::memory:, into which only the service can look'],
      'deliveries',
    );
  }
  const path = url.startsWith(FILE) ? url.slice(FILE.length) : undefined;
  // A list that is empty because the folder is the wrong one would tell nothing.
  if (path !== undefined && !path.startsWith('file:') && !existsSync(path)) {
    throw new UsageError(
      [
        `There is no database at ${resolve(path)}; go to the folder of the service, name it with --database-url, or start the service once`,
      ],
      'deliveries',
    );
  }
  return openDatabase(url, undefined, undefined, settings['database.migrate']);
}
