import { readPackageInfo } from '../core/package-root.ts';
import { didYouMean, quote } from '../core/text.ts';
import { type Command, type CommandEntry, UsageError } from './command.ts';
import { print } from './terminal.ts';

type LoadCommand = NonNullable<CommandEntry['load']>;

/** Every command; help lists them in this order. */
export const commands: readonly CommandEntry[] = [
  {
    name: 'serve',
    summary: 'Opens the doors and runs until a signal. The default.',
    run: async (argv) => (await import('../app/serve.ts')).serve(argv),
  },
  {
    name: 'init',
    summary: 'Writes a project: configuration, test, files to deploy it.',
    load: async () => (await import('./init.ts')).init,
  },
  {
    name: 'health',
    summary: 'Tells whether the service is ready; exits with 0 or 1.',
    load: async () => (await import('./health.ts')).health,
  },
  {
    name: 'deliveries',
    summary: 'Lists, shows, follows, replays and discards webhook deliveries.',
    parts: {
      list: async () => (await import('./deliveries/list.ts')).listDeliveries,
      show: async () => (await import('./deliveries/show.ts')).showDelivery,
      tail: async () => (await import('./deliveries/tail.ts')).tailDeliveries,
      replay: async () => (await import('./deliveries/change.ts')).changeCommands.replay,
      discard: async () => (await import('./deliveries/change.ts')).changeCommands.discard,
    },
  },
  {
    name: 'users',
    summary: 'Lists, imports and exports the users of the database.',
    parts: {
      list: async () => (await import('./users/list.ts')).listUsers,
      import: async () => (await import('./rows/import.ts')).importUsers,
      export: async () => (await import('./rows/export.ts')).exportUsers,
    },
  },
  {
    name: 'import',
    summary: 'Imports rows of a relation, or users, from a file.',
    load: async () => (await import('./rows/import.ts')).importRows,
  },
  {
    name: 'export',
    summary: 'Exports rows of a relation, or users, to a file.',
    load: async () => (await import('./rows/export.ts')).exportRows,
  },
  {
    name: 'send',
    summary: 'Sends a webhook delivery, signed as its sender would.',
    load: async () => (await import('./send.ts')).send,
  },
  {
    name: 'listen',
    summary: 'Follows the deliveries of a service; hands them to a program.',
    load: async () => (await import('./deliveries/listen.ts')).listen,
  },
  {
    name: 'tokens',
    summary: 'Creates, lists and revokes tokens for REST and GraphQL.',
    parts: {
      create: async () => (await import('./tokens.ts')).tokenCommands.create,
      list: async () => (await import('./tokens.ts')).tokenCommands.list,
      revoke: async () => (await import('./tokens.ts')).tokenCommands.revoke,
    },
  },
  {
    name: 'rules',
    summary: 'Explains which rows of a relation a caller may read and write.',
    parts: { explain: async () => (await import('./rules.ts')).explainRules },
  },
  {
    name: 'types',
    summary: 'Writes types of the declared relations for TypeScript.',
    load: async () => (await import('./rows/types.ts')).types,
  },
  {
    name: 'migrate',
    summary: 'Brings the schema of the database up to date.',
    load: async () => (await import('./database/migrate.ts')).migrate,
  },
  {
    name: 'introspect',
    summary: 'Writes a declaration of the tables that the database has.',
    load: async () => (await import('./database/introspect.ts')).introspect,
  },
  {
    name: 'database',
    summary: 'Checks whether a PostgreSQL server keeps what Portico promises.',
    parts: { check: async () => (await import('./database/check.ts')).checkDatabase },
  },
  {
    name: 'move',
    summary: 'Copies users and deliveries to another database, of any engine.',
    load: async () => (await import('./database/move.ts')).move,
  },
  {
    name: 'backup',
    summary: 'Writes a checked backup, also while the service runs.',
    load: async () => (await import('./database/backup.ts')).backup,
  },
  {
    name: 'restore',
    summary: 'Replaces the database with a backup.',
    load: async () => (await import('./database/backup.ts')).restore,
  },
  {
    name: 'hash-password',
    summary: 'Prints the hash of a password for MANAGEMENT_PASSWORD.',
    load: async () => (await import('./hash-password.ts')).hashPasswordCommand,
  },
  {
    name: 'help',
    summary: 'Shows this; help <command> its options, help serve all settings.',
    run: async (words, io) => (await import('./help.ts')).showHelp(commands, words, io),
  },
  {
    name: 'version',
    summary: 'Shows the version.',
    run: async (_argv, io) => {
      await print(io, `${readPackageInfo().version}\n`);
      return 0;
    },
  },
];

const shortcuts = new Map<string, string>([
  ['--help', 'help'],
  ['-h', 'help'],
  ['--version', 'version'],
  ['-V', 'version'],
  ['-v', 'version'],
]);

interface CommandLine {
  readonly command: CommandEntry;
  readonly rest: readonly string[];
}

/**
 * Splits a command line into the command, by default `serve`, and its arguments. `--help` and `--version`
 * take precedence wherever they stand; the words before the first option are then the topic. Throws
 * UsageError for a command that does not exist, also as the topic of `help`.
 */
export function parseCommandLine(argv: readonly string[]): CommandLine {
  const shortcut = argv.map((word) => shortcuts.get(word)).find((name) => name !== undefined);
  const isService = argv[0] === undefined || argv[0].startsWith('-');
  const [name = '', ...rest] =
    shortcut === undefined
      ? isService
        ? ['serve', ...argv]
        : argv
      : [
          shortcut,
          ...argv.slice(
            0,
            argv.findIndex((word) => word.startsWith('-')),
          ),
        ];
  const command = commandNamed(name);
  if (command.name === 'help' && rest[0] !== undefined) commandNamed(rest[0]);
  return { command, rest };
}

/** What to run for a command, or for the subcommand of its first word. Rejects with UsageError. */
export async function loadCommand({ command, rest }: CommandLine): Promise<{
  readonly run: Command['run'];
  readonly argv: readonly string[];
}> {
  const { name, run, load, parts = {} } = command;
  if (run !== undefined) return { run, argv: rest };
  if (load !== undefined) return { run: (await load()).run, argv: rest };
  const [part, ...argv] = rest;
  const names = Object.keys(parts);
  const found = names.find((each) => each === part);
  if (found !== undefined) return { run: (await (parts[found] as LoadCommand)()).run, argv };
  const problem =
    part === undefined || part.startsWith('-')
      ? `${name} needs one of ${names.join(', ')} after it`
      : `${quote(part)} is not one of ${names.join(', ')}${didYouMean(part, names)}`;
  throw new UsageError([problem], name);
}

function commandNamed(word: string): CommandEntry {
  const known = commands.find(({ name }) => name === word);
  if (known !== undefined) return known;
  const names = commands.map(({ name }) => name);
  const hint = didYouMean(word, names) || `; there are ${names.join(', ')}`;
  throw new UsageError([`${quote(word)} is not a command${hint}`], '');
}
