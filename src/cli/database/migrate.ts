import { migrateDatabase, pendingMigrations } from '../../sql/open.ts';
import { readArguments } from '../arguments.ts';
import { type Command, type CommandIo, JSON_OPTION } from '../command.ts';
import { counted, print, printJson } from '../terminal.ts';

/** The exit code of --check for missing migrations; 1 means that the check failed. */
const PENDING = 3;

/**
 * `portico migrate`. Resolves to the exit code: 0 when the schema is up to date, 3 when --check finds that it
 * is not. Rejects with UsageError, ConfigError or DatabaseOpenError.
 */
export const migrate: Command = {
  usage: {
    topic: 'migrate',
    words: '[options]',
    about:
      'Brings the schema of the database up to date, as every start does without --no-migrate. ' +
      'Concurrent calls run each migration once. Exit code 0: the schema is up to date.',
    options: {
      '--check': 'Lists missing migrations and writes nothing. Exit code 3: migrations are missing.',
      ...JSON_OPTION,
    },
    examples: ['portico migrate --check', 'portico migrate --database-url postgres://portico@db/portico'],
  },
  run,
};

async function run(argv: readonly string[], io: CommandIo): Promise<number> {
  const args = readArguments(migrate.usage, argv, io);
  const { settings } = await args.configuration();
  const url = settings['database.url'];
  if (url === 'sqlite::memory:') {
    throw args.misuse('The database is sqlite::memory:, which is new at every start');
  }
  const check = args.has('--check');
  const applied = check ? [] : await migrateDatabase(url);
  const pending = check ? await pendingMigrations(url) : [];
  await (args.has('--json')
    ? printJson(io, { applied, pending })
    : print(io, describeMigration(applied, pending)));
  return pending.length > 0 ? PENDING : 0;
}

function describeMigration(applied: readonly string[], pending: readonly string[]): string {
  if (pending.length > 0) {
    return `${counted(pending.length, 'migration is', 'migrations are')} missing: ${pending.join(', ')}.\n`;
  }
  if (applied.length === 0) return 'The schema is up to date; there was nothing to do.\n';
  return `The schema is up to date now; ran ${applied.join(', ')}.\n`;
}
