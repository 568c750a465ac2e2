import { resolve } from 'node:path';
import type { Settings } from '../config/options/options.ts';
import { shellWord } from '../core/text.ts';
import { backupsIn } from '../sql/backup/backup.ts';
import { databaseAt } from '../sql/database.ts';
import { exposedFiles } from '../sql/sqlite/connection.ts';
import { pathOf } from '../sql/sqlite/migrate.ts';

/** Files that one warning names at most. */
const MAX_NAMED = 20;

/** Warns of files of the database that others on this machine may use, and says what to run. */
export function warnOfExposedFiles(
  settings: Settings,
  log: { warn(fields: object, message: string): void },
): void {
  const { engine, place } = databaseAt(settings['database.url']);
  if (engine !== 'sqlite' || place === ':memory:') return;
  const file = pathOf(place);
  const backups =
    settings['backup.every'] === undefined ? [] : backupsIn(resolve(settings['backup.folder']), file);
  const exposed = exposedFiles(
    file,
    backups.map(({ path }) => path),
  );
  if (exposed.length === 0) return;
  const files = exposed.slice(0, MAX_NAMED);
  const run = `chmod 600 ${files.map(shellWord).join(' ')}`;
  const more = exposed.length - files.length;
  log.warn(
    { files, ...(more > 0 && { more }), run },
    'others on this machine may read the data in these files',
  );
}
