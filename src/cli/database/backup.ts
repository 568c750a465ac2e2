import { existsSync, mkdirSync, realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { backupFileOf, backupName, writeBackup } from '../../sql/backup/backup.ts';
import { BackupError } from '../../sql/backup/backup-error.ts';
import type { OnCopy } from '../../sql/backup/copy.ts';
import { restoreBackup } from '../../sql/backup/restore.ts';
import { isServed } from '../../sql/sqlite/service-lock.ts';
import { readArguments } from '../arguments.ts';
import { type Command, type CommandIo, JSON_OPTION, YES_OPTION } from '../command.ts';
import {
  confirmed,
  counted,
  INTERRUPTED,
  interruption,
  note,
  type Progress,
  print,
  printJson,
  showProgress,
} from '../terminal.ts';

/**
 * `portico backup`. Resolves to the exit code: 0 when the backup is written and checked, 130 when
 * interrupted. Rejects with UsageError, ConfigError, BackupError or DatabaseOpenError.
 */
export const backup: Command = {
  usage: {
    topic: 'backup',
    words: '[file or folder] [options]',
    maxWords: 1,
    about:
      'Writes a consistent backup of an SQLite database, whether or not the service runs, and checks its integrity and ' +
      'the number of rows of each table. Without a file it goes to BACKUP_FOLDER under a name with the time. For ' +
      'PostgreSQL it prints the pg_dump to run.',
    options: { ...JSON_OPTION },
    examples: ['portico backup', 'portico backup /mnt/backups/portico.db'],
  },
  run: runBackup,
};

async function runBackup(argv: readonly string[], io: CommandIo): Promise<number> {
  const args = readArguments(backup.usage, argv, io);
  const { settings } = await args.configuration();
  const now = Date.now();
  const dump = backupName('portico', now).replace(/\.db$/, '.dump');
  const file = backupFileOf(
    settings['database.url'],
    `pg_dump --format=custom --no-owner --file=${dump} --dbname="$DATABASE_URL"`,
  );
  if (!existsSync(file)) throw new BackupError(`There is no database ${file} yet. Start the service first.`);
  const to = targetOf(args.words[0], settings['backup.folder'], backupName(file, now));
  using signal = interruption(io);
  try {
    using shown = showCopy(io);
    const { bytes, rows } = await writeBackup(file, to, {
      live: isServed(realpathSync(file)),
      onCopy: shown.onCopy,
      signal,
    });
    if (args.has('--json')) await printJson(io, { path: to, bytes, rows });
    else await print(io, `Wrote ${to}: ${describeCopy(bytes, rows)}.\n`);
    return 0;
  } catch (error) {
    if (!signal.aborted) throw error;
    note(io, 'Interrupted; no backup was written.');
    return INTERRUPTED;
  }
}

/** `4,096 bytes; users 2 rows, …`, without empty tables. */
function describeCopy(bytes: number, rows: Readonly<Record<string, number>>): string {
  const filled = Object.entries(rows).filter(([table, count]) => count > 0 && table !== 'migrations');
  const tables = filled.map(([table, count]) => `${table} ${counted(count, 'row', 'rows')}`);
  return `${counted(bytes, 'byte', 'bytes')}; ${tables.join(', ') || 'no rows'}; integrity checked`;
}

/** In a folder, the file gets a name with the time. The configured folder need not exist yet. */
function targetOf(given: string | undefined, folder: string, name: string): string {
  if (given === undefined) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return join(folder, name);
  }
  const isFolder = given.endsWith('/') || statSync(given, { throwIfNoEntry: false })?.isDirectory() === true;
  return isFolder ? join(given, name) : given;
}

/**
 * `portico restore`. Resolves to the exit code: 0 when the database is that of the backup, 1 when the user
 * did not confirm, 130 when interrupted. Rejects with UsageError, ConfigError, BackupError or
 * DatabaseOpenError.
 */
export const restore: Command = {
  usage: {
    topic: 'restore',
    words: '<file> [options]',
    maxWords: 1,
    about:
      'Copies and checks a backup, then replaces the SQLite database with it. No service may run on the database ' +
      'meanwhile. The previous database is kept beside it. For PostgreSQL it prints the pg_restore to run.',
    options: { ...YES_OPTION, ...JSON_OPTION },
    examples: ['portico restore backups/portico-2026-01-31T14-00-00Z.db'],
  },
  run: runRestore,
};

async function runRestore(argv: readonly string[], io: CommandIo): Promise<number> {
  const args = readArguments(restore.usage, argv, io);
  const [from] = args.words;
  if (from === undefined) throw args.misuse('restore needs the file of a backup');
  const { settings } = await args.configuration();
  const file = backupFileOf(
    settings['database.url'],
    `pg_restore --single-transaction --no-owner --dbname="$DATABASE_URL" ${from}   # into an empty database`,
  );
  using signal = interruption(io);
  const question = `Replace ${file} with ${from}? The previous database is kept beside it.`;
  if (existsSync(file) && !args.has('--yes') && !(await confirmed(io, question, signal))) {
    note(io, 'Nothing was restored.');
    return signal.aborted ? INTERRUPTED : 1;
  }
  try {
    using shown = showCopy(io);
    const { bytes, rows, kept } = await restoreBackup(from, file, { onCopy: shown.onCopy, signal });
    if (args.has('--json')) {
      await printJson(io, { path: file, bytes, rows, kept: kept ?? null });
    } else {
      const before = kept === undefined ? '' : `The previous database is kept as ${kept}.\n`;
      await print(io, `Restored ${file}: ${describeCopy(bytes, rows)}.\n${before}`);
    }
    return 0;
  } catch (error) {
    if (!signal.aborted) throw error;
    note(io, 'Interrupted; the database is unchanged.');
    return INTERRUPTED;
  }
}

/** Shows the progress of copying a database. Disposing of it clears the line. */
function showCopy(io: CommandIo): Disposable & { readonly onCopy: OnCopy } {
  const shown = new DisposableStack();
  const lines = new Map<string, Progress>();
  return {
    onCopy(step, done, total) {
      const doing = step === 'copy' ? 'Copying pages:' : 'Checking tables:';
      const line = lines.get(step) ?? shown.use(showProgress(io, doing, total));
      lines.set(step, line);
      line.update(done);
    },
    [Symbol.dispose]: () => shown.dispose(),
  };
}
