import { existsSync } from 'node:fs';
import { userInfo } from 'node:os';
import { resolve } from 'node:path';
import { ANONYMOUS, type AuditData, boundedEntry } from '../../access/audit.ts';
import { auditDays } from '../../app/audit.ts';
import type { Config } from '../../app/load-config.ts';
import type { Settings } from '../../config/options/options.ts';
import { type Database, databaseAt } from '../../sql/database.ts';
import { openDatabase } from '../../sql/open.ts';
import { UsageError } from '../command.ts';

/** Opens a configuration's existing database for `topic`. Rejects with UsageError or DatabaseOpenError. */
export async function openExisting({ settings }: Config, topic: string): Promise<Database> {
  const misuse = (problem: string) => new UsageError([problem], topic);
  const url = settings['database.url'];
  const { engine, place } = databaseAt(url);
  if (place === ':memory:') {
    throw misuse('The database is sqlite::memory:, which only the service itself can read');
  }
  // Opening would create the database, and an empty list would hide that this is the wrong folder.
  if (engine === 'sqlite' && !place.startsWith('file:') && !existsSync(place)) {
    throw misuse(
      `There is no database at ${resolve(place)}; go to the folder of the service, name it with --database-url, or start the service once`,
    );
  }
  // A command serves no requests meanwhile, so it may read on its own thread.
  return openDatabase(url, { mayMigrate: settings['database.migrate'], readThread: false });
}

/** Records what a command has done to the database of a service, if that service keeps an audit log. */
export async function auditCommand(
  settings: Settings,
  { audit }: Pick<Database, 'audit'>,
  type: string,
  data: AuditData,
): Promise<void> {
  if (auditDays(settings) === 0) return;
  const entry = boundedEntry({
    principal: userName(),
    type,
    data: { by: 'command line', ...data },
    isAction: true,
  });
  await audit.append([{ ...entry, at: Date.now() }]);
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // In a container the user often has no name.
    return ANONYMOUS;
  }
}
