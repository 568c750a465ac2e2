import { existsSync, mkdirSync, realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { BackupError } from '../database/backup/backup-error.ts';
import { backupFileOf } from '../database/backup/backup-file.ts';
import { backupName } from '../database/backup/backup-names.ts';
import { writeBackup } from '../database/backup/write-backup.ts';
import { isServed } from '../database/sqlite/service-lock.ts';
import { readArguments } from './argv/command-arguments.ts';
import { usages } from './help/usages.ts';
import { showCopy } from './terminal/copy-progress.ts';
import { INTERRUPTED, interruption } from './terminal/interruption.ts';
import { counted, endWithReader, note, print, printJson } from './terminal/output.ts';

/**
 * `portico backup`. Resolves to the exit code: 0 when the backup is written and checked, 130 when interrupted. Rejects
 * with UsageError, ConfigError, BackupError or DatabaseOpenError.
 */
export async function backupCommand(argv: readonly string[]): Promise<number> {
  const args = readArguments(usages.backup, argv);
  const { settings } = await args.configuration();
  const now = Date.now();
  const dump = backupName('portico', now).replace(/\.db$/, '.dump');
  const file = backupFileOf(
    settings['database.url'],
    `pg_dump --format=custom --no-owner --file=${dump} --dbname="$DATABASE_URL"`,
  );
  if (!existsSync(file)) throw new BackupError(`There is no database ${file} yet. Start the service first.`);
  const to = targetOf(args.words[0], settings['backup.folder'], backupName(file, now));
  endWithReader();
  using signal = interruption();
  try {
    using shown = showCopy();
    const { bytes, rows } = await writeBackup(file, to, {
      live: isServed(realpathSync(file)),
      onCopy: shown.onCopy,
      signal,
    });
    if (args.has('--json')) await printJson({ path: to, bytes, rows });
    else await print(`Wrote ${to}: ${describeCopy(bytes, rows)}.\n`);
    return 0;
  } catch (error) {
    if (!signal.aborted) throw error;
    note('Interrupted; no backup was written.');
    return INTERRUPTED;
  }
}

/** `4,096 bytes; users 2 rows, …`, without the tables that are empty. */
export function describeCopy(bytes: number, rows: Readonly<Record<string, number>>): string {
  const filled = Object.entries(rows).filter(([table, count]) => count > 0 && table !== 'migrations');
  const tables = filled.map(([table, count]) => `${table} ${counted(count, 'row', 'rows')}`);
  return `${counted(bytes, 'byte', 'bytes')}; ${tables.join(', ') || 'no rows'}; integrity checked`;
}

/** A folder gets a file with the time in its name. The configured one need not be there yet. */
function targetOf(given: string | undefined, folder: string, name: string): string {
  if (given === undefined) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return join(folder, name);
  }
  const isFolder = given.endsWith('/') || statSync(given, { throwIfNoEntry: false })?.isDirectory() === true;
  return isFolder ? join(given, name) : given;
}
