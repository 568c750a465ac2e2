import { ExpectedError } from '../core/errors.ts';
import { didYouMean, quote } from '../core/text.ts';

/** Every command; help lists them in this order. */
export const commands = [
  { name: 'serve', summary: 'Opens the doors and runs until it receives a signal. The default.' },
  { name: 'init', summary: 'Writes a first configuration module.' },
  { name: 'health', summary: 'Exits with 0 if the service is ready, otherwise with 1 and the reason.' },
  { name: 'deliveries', summary: 'Lists, shows, follows, replays and discards webhook deliveries.' },
  { name: 'users', summary: 'Lists, imports and exports the users of the database.' },
  { name: 'send', summary: 'Sends a webhook delivery, signed as its sender would.' },
  { name: 'tokens', summary: 'Creates, lists and revokes tokens for REST and GraphQL.' },
  { name: 'migrate', summary: 'Brings the schema of the database up to date.' },
  { name: 'move', summary: 'Copies users and deliveries to another database, of any engine.' },
  { name: 'backup', summary: 'Writes a checked backup of the database, while the service runs.' },
  { name: 'restore', summary: 'Replaces the database with a backup.' },
  { name: 'hash-password', summary: 'Prints the hash of a password for MANAGEMENT_PASSWORD.' },
  { name: 'help', summary: 'Shows this text, or the options of the given command.' },
  { name: 'version', summary: 'Shows the version.' },
] as const;

/** The name of a command. */
export type CommandName = (typeof commands)[number]['name'];

/** A command with its arguments. */
interface CommandLine {
  readonly command: CommandName;
  readonly rest: readonly string[];
}

const shortcuts = new Map<string, CommandName>([
  ['--help', 'help'],
  ['-h', 'help'],
  ['--version', 'version'],
  ['-V', 'version'],
  ['-v', 'version'],
]);

/**
 * Splits a command line into the command, by default `serve`, and its arguments. `--help` and `--version`
 * take precedence wherever they stand; the words before the first option are then the topic. Throws
 * UsageError for a command that does not exist.
 */
export function parseCommandLine(argv: readonly string[]): CommandLine {
  const [first, ...rest] = argv;
  const shortcut = argv.map((word) => shortcuts.get(word)).find((name) => name !== undefined);
  if (shortcut !== undefined) {
    const options = argv.findIndex((word) => word.startsWith('-'));
    return { command: shortcut, rest: argv.slice(0, options) };
  }
  if (first === undefined || first.startsWith('-')) return { command: 'serve', rest: argv };
  const known = commands.find(({ name }) => name === first);
  if (known !== undefined) return { command: known.name, rest };
  const names = commands.map(({ name }) => name);
  const hint = didYouMean(first, names) || `; there are ${names.join(', ')}`;
  throw new UsageError([`${quote(first)} is not a command${hint}`], '');
}

/** A command was called wrongly; it ends with this message and exit code 2. */
export class UsageError extends ExpectedError {
  override readonly name = 'UsageError';
  readonly code = 'USAGE';

  /**
   * `problems` lists everything that is wrong, one line each, without secrets. `topic` is the argument of
   * `portico help` to refer to: `deliveries list`, or empty for all commands.
   */
  constructor(problems: readonly string[], topic?: string) {
    const more = topic === undefined ? [] : [`See "${`portico help ${topic}`.trimEnd()}".`];
    super([...problems, ...more].join('\n'));
  }
}
