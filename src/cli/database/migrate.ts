import type { Relation } from '../../relations/relation.ts';
import { migrateDatabase, pendingMigrations, withSchema } from '../../sql/open.ts';
import type { SchemaSession, Step } from '../../sql/schema/steps.ts';
import { type CommandArguments, readArguments } from '../arguments.ts';
import { type Command, type CommandIo, JSON_OPTION } from '../command.ts';
import { counted, print, printJson } from '../terminal.ts';

/** The exit code of --check for missing migrations and additive steps; 1 means that the check failed. */
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
      '--check':
        'Lists missing migrations, and each step to the tables of declared relations with its SQL, and writes ' +
        'nothing. Exit code 3: migrations or steps that a start makes too are missing; 4: other steps are.',
      '--rewrite': 'Also makes steps that write a table of a relation anew.',
      '--max-pause <seconds>':
        'Refuses a step that, by an estimate from the rows, lets nothing be written for longer; default 2.',
      '--drop <name>':
        'Drops a column or table of relations that is no longer declared, after writing its values to ' +
        '<name>.ndjson in this folder. Can be given more than once.',
      ...JSON_OPTION,
    },
    repeatable: ['--drop'],
    examples: [
      'portico migrate --check',
      'portico migrate --drop books.subtitle',
      'portico migrate --database-url postgres://portico@db/portico',
    ],
  },
  run,
};

async function run(argv: readonly string[], io: CommandIo): Promise<number> {
  const args = readArguments(migrate.usage, argv, io);
  const { settings, relations } = await args.configuration();
  const url = settings['database.url'];
  if (url === 'sqlite::memory:') {
    throw args.misuse('The database is sqlite::memory:, which is new at every start');
  }
  const check = args.has('--check');
  const drop = args.values('--drop').map(String);
  if (check && (drop.length > 0 || args.has('--rewrite')))
    throw args.misuse('--check writes nothing; leave --rewrite and --drop out');
  const applied = check ? [] : await migrateDatabase(url);
  const pending = check ? await pendingMigrations(url) : [];
  const isUsed = relations.length > 0 || drop.length > 0;
  const tables = isUsed
    ? await withSchema(url, check ? 'look' : 'migrate', (session) =>
        migrateTables(session, relations, {
          check,
          rewrite: args.has('--rewrite'),
          maxPause: maxPauseOf(args),
          drop,
          say: args.has('--json') ? async () => {} : (text) => print(io, text),
        }),
      )
    : undefined;
  await (args.has('--json')
    ? printJson(io, { applied, pending, ...tables?.report })
    : print(io, describeMigration(applied, pending, tables?.summary ?? '')));
  return Math.max(pending.length > 0 ? PENDING : 0, tables?.code ?? 0);
}

function maxPauseOf(args: CommandArguments): number | undefined {
  const text = args.value('--max-pause');
  if (text === undefined) return undefined;
  if (!/^\d{1,6}$/.test(text)) throw args.misuse('--max-pause needs a whole number of seconds');
  return Number(text);
}

interface TableOptions {
  readonly check: boolean;
  readonly rewrite: boolean;
  readonly maxPause: number | undefined;
  readonly drop: readonly string[];
  /** Prints what is being done. */
  readonly say: (text: string) => Promise<void>;
}

/** Shows or makes the steps to the tables of relations. */
async function migrateTables(
  session: SchemaSession,
  relations: readonly Relation[],
  { check, rewrite, maxPause, drop, say }: TableOptions,
) {
  const { checkExitCode, describePlan, migrateRelations, planRelations } = await import(
    '../../sql/schema/migrate.ts'
  );
  if (check) {
    const plan = await planRelations(session, relations);
    await say(await describePlan(session, plan));
    const { length } = plan.steps;
    const summary = length === 0 ? '' : `${counted(length, 'step is', 'steps are')} missing.\n`;
    return { report: { ...plan, files: [] }, code: checkExitCode(plan), summary };
  }
  const onStep = ({ table, what }: Step) => say(`${table}: ${what}\n`);
  const steps = await migrateRelations(session, relations, { rewrite, maxPause, onStep });
  const { dropUndeclared } = await import('../../sql/schema/drop.ts');
  const files = await dropUndeclared(session, relations, drop, process.cwd());
  for (const [nth, file] of files.entries()) await say(`Dropped ${drop[nth]}; its values are in ${file}.\n`);
  const made = steps.length === 0 ? '' : `; made ${counted(steps.length, 'step', 'steps')}`;
  const isChanged = steps.length > 0 || files.length > 0;
  const summary = isChanged ? `The tables of relations are up to date now${made}.\n` : '';
  return { report: { steps, files }, code: 0, summary };
}

function describeMigration(applied: readonly string[], pending: readonly string[], tables: string): string {
  if (pending.length > 0) {
    return `${counted(pending.length, 'migration is', 'migrations are')} missing: ${pending.join(', ')}.\n${tables}`;
  }
  if (applied.length > 0) return `The schema is up to date now; ran ${applied.join(', ')}.\n${tables}`;
  return tables === '' ? 'The schema is up to date; there was nothing to do.\n' : tables;
}
