import { ConfigError } from '../config/config-error.ts';
import { quote } from '../core/quote.ts';
import { didYouMean } from '../core/suggest.ts';

/** Every command; help lists them in this order. The first one runs when none is given. */
export const commands = [
  { name: 'serve', summary: 'Open the doors and run until a signal comes. What happens without a command.' },
  {
    name: 'deliveries',
    summary:
      'See webhook deliveries and act on them: list, show, tail, replay, discard. "portico help deliveries" tells more.',
  },
  {
    name: 'send',
    summary: 'Send a webhook delivery, signed as its sender would. "portico help send" tells more.',
  },
  {
    name: 'migrate',
    summary: 'Bring the schema of the database up to date. "portico help migrate" tells more.',
  },
  {
    name: 'move',
    summary: 'Move users and deliveries to another database, of any engine. "portico help move" tells more.',
  },
  {
    name: 'hash-password',
    summary:
      'Ask for a password, or read it from standard input, and print its hash for MANAGEMENT_PASSWORD; with --argon2id by that algorithm instead of scrypt.',
  },
  { name: 'help', summary: 'Show this text; with a command behind it, how that one is called.' },
  { name: 'version', summary: 'Show the version.' },
] as const;

export type CommandName = (typeof commands)[number]['name'];

/** What to do, and the words behind the command. */
export interface CommandLine {
  readonly command: CommandName;
  readonly rest: readonly string[];
}

const shortcuts = new Map<string, CommandName>([
  ['--help', 'help'],
  ['-h', 'help'],
  ['--version', 'version'],
  ['-V', 'version'],
]);

/**
 * Splits the command from its options. `--help` and `--version` win wherever they stand; the words before the first
 * option are then what is asked about.
 * Throws ConfigError for a command that does not exist.
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
  const hint = didYouMean(first, names);
  throw new ConfigError([
    `${quote(first)} is not a command${hint === '' ? `; there are ${names.join(', ')}` : hint}`,
  ]);
}
