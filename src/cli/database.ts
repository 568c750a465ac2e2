import { existsSync, mkdirSync, realpathSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Config } from '../config/load.ts';
import { backupFileOf, backupName, writeBackup } from '../sql/backup/backup.ts';
import { BackupError } from '../sql/backup/backup-error.ts';
import { restoreBackup } from '../sql/backup/restore.ts';
import { type Database, databaseAt, parseDatabaseUrl } from '../sql/database.ts';
import { type MoveReport, moveDatabase, openMoveSource, openMoveTarget } from '../sql/move/move.ts';
import { migrateDatabase, openDatabase, pendingMigrations } from '../sql/open.ts';
import { isServed } from '../sql/sqlite/service-lock.ts';
import { type CommandArguments, readArguments } from './arguments.ts';
import { UsageError } from './command-line.ts';
import {
  confirmed,
  counted,
  endWithReader,
  INTERRUPTED,
  interruption,
  note,
  type Progress,
  print,
  printJson,
  showCopy,
  showProgress,
} from './terminal.ts';
import { usages } from './usages.ts';

/**
 * `portico backup`. Resolves to the exit code: 0 when the backup is written and checked, 130 when
 * interrupted. Rejects with UsageError, ConfigError, BackupError or DatabaseOpenError.
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
export async function restoreCommand(argv: readonly string[]): Promise<number> {
  const args = readArguments(usages.restore, argv);
  const [from] = args.words;
  if (from === undefined) throw args.misuse('restore needs the file of a backup');
  const { settings } = await args.configuration();
  const file = backupFileOf(
    settings['database.url'],
    `pg_restore --single-transaction --no-owner --dbname="$DATABASE_URL" ${from}   # into an empty database`,
  );
  endWithReader();
  using signal = interruption();
  const question = `Replace ${file} with ${from}? The previous database is kept beside it.`;
  if (existsSync(file) && !args.has('--yes') && !(await confirmed(question, signal))) {
    note('Nothing was restored.');
    return signal.aborted ? INTERRUPTED : 1;
  }
  try {
    using shown = showCopy();
    const { bytes, rows, kept } = await restoreBackup(from, file, { onCopy: shown.onCopy, signal });
    if (args.has('--json')) {
      await printJson({ path: file, bytes, rows, kept: kept ?? null });
    } else {
      const before = kept === undefined ? '' : `The previous database is kept as ${kept}.\n`;
      await print(`Restored ${file}: ${describeCopy(bytes, rows)}.\n${before}`);
    }
    return 0;
  } catch (error) {
    if (!signal.aborted) throw error;
    note('Interrupted; the database is unchanged.');
    return INTERRUPTED;
  }
}

/** The exit code of --check for missing migrations; 1 means that the check failed. */
const PENDING = 3;

/**
 * `portico migrate`. Resolves to the exit code: 0 when the schema is up to date, 3 when --check finds that it
 * is not. Rejects with UsageError, ConfigError or DatabaseOpenError.
 */
export async function migrateCommand(argv: readonly string[]): Promise<number> {
  const args = readArguments(usages.migrate, argv);
  const { settings } = await args.configuration();
  const url = settings['database.url'];
  if (url === 'sqlite::memory:') {
    throw args.misuse('The database is sqlite::memory:, which is new at every start');
  }
  endWithReader();
  const check = args.has('--check');
  const applied = check ? [] : await migrateDatabase(url);
  const pending = check ? await pendingMigrations(url) : [];
  await (args.has('--json') ? printJson({ applied, pending }) : print(describeMigration(applied, pending)));
  return pending.length > 0 ? PENDING : 0;
}

function describeMigration(applied: readonly string[], pending: readonly string[]): string {
  if (pending.length > 0) {
    return `${counted(pending.length, 'migration is', 'migrations are')} missing: ${pending.join(', ')}.\n`;
  }
  if (applied.length === 0) return 'The schema is up to date; there was nothing to do.\n';
  return `The schema is up to date now; ran ${applied.join(', ')}.\n`;
}

/**
 * `portico move`. Resolves to the exit code: 0 when the target holds everything and the comparison passed,
 * 130 when interrupted. Rejects with UsageError, ConfigError, DatabaseOpenError or MoveError.
 */
export async function moveCommand(argv: readonly string[]): Promise<number> {
  const args = readArguments(usages.move, argv);
  const [from, to] = await databases(args);
  endWithReader();
  using signal = interruption();
  const report = await moveShown(from, to, args.has('--restart'), signal);
  const { resumed, alreadyComplete, tables } = report;
  if (args.has('--json')) {
    const complete = tables !== undefined;
    await printJson({ complete, resumed, alreadyComplete, tables: tables ?? null });
  } else if (tables === undefined) {
    note(
      'Interrupted. To resume, run it again with the same arguments; until it is complete, no service starts on the target.',
    );
  } else await print(describeMove(tables, alreadyComplete));
  return tables === undefined ? INTERRUPTED : 0;
}

/** The URLs of source and target. Rejects with UsageError or ConfigError, whose messages show neither URL. */
async function databases(args: CommandArguments): Promise<readonly [string, string]> {
  const to = args.value('--to');
  if (to === undefined) throw args.misuse('move needs --to, the database to move to');
  const from = args.value('--from') ?? (await args.configuration()).settings['database.url'];
  const unusable = Object.entries({ '--from': from, '--to': to }).filter(([, url]) => !isMovable(url));
  if (unusable.length > 0) {
    throw args.misuse(
      ...unusable.map(([flag]) => `${flag} is no database to move; expected sqlite:<file> or postgres://...`),
    );
  }
  return [from, to];
}

function isMovable(url: string): boolean {
  const place = parseDatabaseUrl(url)?.place ?? '';
  return place !== ':memory:' && place !== '';
}

/** Moves, and shows a line of progress for each step. */
async function moveShown(
  from: string,
  to: string,
  restart: boolean,
  signal: AbortSignal,
): Promise<MoveReport> {
  await using source = await openMoveSource(from);
  await using target = await openMoveTarget(to);
  using shown = new DisposableStack();
  const lines = new Map<string, Progress>();
  return await moveDatabase(source, target, {
    signal,
    restart,
    onProgress(step, done, total) {
      const doing = step === 'copy' ? 'Moving rows:' : 'Comparing rows:';
      const line = lines.get(step) ?? shown.use(showProgress(doing, total));
      lines.set(step, line);
      line.update(done);
    },
  });
}

function describeMove(tables: NonNullable<MoveReport['tables']>, alreadyComplete: boolean): string {
  const lines = Object.entries(tables).map(
    ([name, { rows, sha256 }]) => `  ${name.padEnd(11)}${counted(rows, 'row', 'rows')}, SHA-256 ${sha256}\n`,
  );
  const done = alreadyComplete
    ? 'The move is already complete, nothing was copied; both databases hold the same:'
    : 'Moved; both databases hold the same:';
  return `${done}\n${lines.join('')}Start the service with DATABASE_URL set to the target. The source was not changed.\n`;
}

/**
 * Opens the existing database of a configuration for the command `topic`. Rejects with UsageError or
 * DatabaseOpenError.
 */
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
