import { migrateDatabase, pendingMigrations } from '../database/migrate-database.ts';
import { readArguments } from './argv/command-arguments.ts';
import { usages } from './help/usages.ts';
import { counted, endWithReader, print, printJson } from './terminal/output.ts';

/** The exit code of --check when migrations are missing; 1 means that the check failed. */
const PENDING = 3;

/**
 * `portico migrate`. Resolves to the exit code: 0 when the schema is up to date, 3 when --check finds that it is not.
 * Rejects with UsageError, ConfigError or DatabaseOpenError.
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
  await (args.has('--json') ? printJson({ applied, pending }) : print(describe(applied, pending)));
  return pending.length > 0 ? PENDING : 0;
}

function describe(applied: readonly string[], pending: readonly string[]): string {
  if (pending.length > 0) {
    return `${counted(pending.length, 'migration is', 'migrations are')} missing: ${pending.join(', ')}.\n`;
  }
  if (applied.length === 0) return 'The schema is up to date; there was nothing to do.\n';
  return `The schema is up to date now; ran ${applied.join(', ')}.\n`;
}
