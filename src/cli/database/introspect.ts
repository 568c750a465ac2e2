import { existsSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Config, loadConfig } from '../../app/load-config.ts';
import { moduleFiles } from '../../config/module.ts';
import type { ColumnData, RelationData, RelationsData } from '../../config/schema/declaration.ts';
import { isRecord } from '../../core/json.ts';
import { databaseAt } from '../../sql/database.ts';
import { existingTables } from '../../sql/open.ts';
import { type CommandArguments, readArguments } from '../arguments.ts';
import type { Command, CommandIo } from '../command.ts';
import { note, print } from '../terminal.ts';

/** `portico introspect`. Resolves to the exit code. Rejects with UsageError, ConfigError or DatabaseOpenError. */
export const introspect: Command = {
  usage: {
    topic: 'introspect',
    words: '[options]',
    about:
      'Writes a declaration of the tables that the database has, as a configuration module, and tells on standard ' +
      'error what it leaves out. Reads only.',
    options: {
      '--schema <name>': 'Schema of PostgreSQL whose tables are read; default the current one.',
      '--only <tables>': 'Tables to declare, with commas between; default all that have a primary key.',
      '--except <tables>': 'Tables to leave out, with commas between.',
      '--json': 'Writes a portico.config.json instead of a module.',
    },
    examples: [
      'portico introspect > portico.config.mts',
      'portico introspect --only Album,Artist --json',
      'portico introspect --database-url postgres://portico@db/shop --schema public',
    ],
  },
  run,
};

async function run(argv: readonly string[], io: CommandIo): Promise<number> {
  const args = readArguments(introspect.usage, argv, io);
  const { settings } = await configurationOf(args, io);
  const url = settings['database.url'];
  const { engine, place } = databaseAt(url);
  const schema = args.value('--schema');
  if (place === ':memory:' || (engine === 'sqlite' && !place.startsWith('file:') && !existsSync(place)))
    throw args.misuse(
      place === ':memory:'
        ? 'The database is sqlite::memory:, which is new at every start'
        : `There is no database at ${resolve(place)}; name it with --database-url or DATABASE_URL`,
    );
  if (engine === 'sqlite' && schema !== undefined)
    throw args.misuse('--schema names a schema of PostgreSQL; SQLite has none');
  const { relations, notes } = await existingTables(url, {
    schema,
    only: listOf(args.value('--only')),
    except: listOf(args.value('--except')),
  });
  for (const each of notes) note(io, each);
  await print(io, args.has('--json') ? `${JSON.stringify({ relations }, null, 2)}\n` : moduleOf(relations));
  return 0;
}

function listOf(text: string | undefined): readonly string[] | undefined {
  return text?.split(',').filter((name) => name !== '');
}

/** The configuration, without the module that the shell has just emptied to write the output to it. */
function configurationOf(args: CommandArguments, { env }: CommandIo): Promise<Config> {
  const folder = process.cwd();
  const isEmptied = moduleFiles(folder).some((name) => statSync(join(folder, name)).size === 0);
  return isEmptied
    ? loadConfig({ argv: args.config, env, cwd: join(folder, 'no-configuration') })
    : args.configuration();
}

/** A configuration module with builders. */
function moduleOf(relations: RelationsData): string {
  const columns = Object.values(relations).flatMap((relation) => Object.values(relation.columns));
  const builders = [...new Set(columns.map(builderOf))];
  const imports = ['defineConfig', ...builders].sort().join(', ');
  const body = Object.entries(relations).map(([name, relation]) => relationText(name, relation));
  return `import { ${imports} } from 'portico';\n\nexport default defineConfig({\n  relations: {\n${body.join('')}  },\n});\n`;
}

const builderOf = ({ type }: ColumnData) => (type === 'enum' ? 'oneOf' : type);

function relationText(name: string, { columns, ...options }: RelationData): string {
  const before = ['existing', 'schema', 'one', 'table', 'key'];
  const entries = Object.entries(options);
  const line = ([key, value]: readonly [string, unknown]) => `      ${key}: ${literal(value)},\n`;
  const declared = Object.entries(columns).map(
    ([column, data]) => `        ${column}: ${columnText(data)},\n`,
  );
  return [
    `    ${name}: {\n`,
    ...entries.filter(([key]) => before.includes(key)).map(line),
    `      columns: {\n${declared.join('')}      },\n`,
    ...entries.filter(([key]) => !before.includes(key)).map(line),
    '    },\n',
  ].join('');
}

function columnText(data: ColumnData): string {
  const { type, ...rest } = data as ColumnData & Readonly<Record<string, unknown>>;
  const [words, options] = argumentsOf(type, rest);
  const own = Object.keys(options).length === 0 ? [] : [literal(options)];
  return `${builderOf(data)}(${[...words, ...own].join(', ')})`;
}

/** What a builder takes before its options. */
function argumentsOf(type: string, options: Readonly<Record<string, unknown>>) {
  const positional: Readonly<Record<string, readonly string[]>> = {
    decimal: ['precision', 'scale'],
    enum: ['values'],
    reference: ['to'],
  };
  const names = positional[type] ?? [];
  const rest = Object.fromEntries(Object.entries(options).filter(([name]) => !names.includes(name)));
  return [names.map((name) => literal(options[name])), rest] as const;
}

/** A value as it is written in a module. */
function literal(value: unknown): string {
  if (typeof value === 'string')
    return /['\\]|[^\x20-\x7e]/.test(value) ? JSON.stringify(value) : `'${value}'`;
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`;
  if (!isRecord(value)) return String(value);
  const members = Object.entries(value).map(
    ([name, each]) => `${/^[A-Za-z_]\w*$/.test(name) ? name : literal(name)}: ${literal(each)}`,
  );
  return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`;
}
