import type { Readable, Writable } from 'node:stream';
import { ExpectedError } from '../core/errors.ts';

/** What `portico` runs for a command or subcommand. */
export interface Command {
  readonly usage: CommandUsage;
  /**
   * Runs the command with the arguments after its topic; resolves to the exit code: 0, 1 for a failure, 130
   * when interrupted. Rejects with UsageError, ConfigError or another expected error.
   */
  run(argv: readonly string[], io: CommandIo): Promise<number>;
}

type LoadCommand = () => Promise<Command>;

/** A command as `portico help` lists it. Its code is loaded when it is called or its help is shown. */
export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  /** Undefined for a command with subcommands, and for one whose options, if any, are the configuration's. */
  readonly load?: LoadCommand;
  readonly parts?: Readonly<Record<string, LoadCommand>>;
  /** Runs a command that has no usage. */
  readonly run?: Command['run'];
}

export interface CommandUsage {
  /** The command with its subcommand, as written after `portico` and `portico help`. */
  readonly topic: string;
  /** The words after the topic, such as `<id>`. */
  readonly words: string;
  /** Maximum number of positional words. Default: 0. */
  readonly maxWords?: number;
  readonly about: string;
  /** The descriptions of the options; `--limit <n>` takes a value, `--json` none. */
  readonly options: Readonly<Record<string, string>>;
  /** The options whose values are secrets. */
  readonly secret?: readonly string[];
  /** The options that can be given more than once. */
  readonly repeatable?: readonly string[];
  readonly examples?: readonly string[];
  /** Whether it reads no configuration, and so accepts none of its options. Default: false. */
  readonly standalone?: boolean;
}

/** What a command reads from and writes to. `process` is one. */
export interface CommandIo {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: Writable & { readonly isTTY?: boolean };
  readonly env: NodeJS.ProcessEnv;
  /** Adds a listener for SIGINT or SIGTERM. */
  on(signal: 'SIGINT' | 'SIGTERM', listener: () => void): unknown;
  off(signal: 'SIGINT' | 'SIGTERM', listener: () => void): unknown;
  /** Ends the command at once. */
  exit(code: number): never;
}

/** The option of commands that can print JSON. */
export const JSON_OPTION = { '--json': 'Prints one JSON document instead of text.' };

/** The option that answers the question that a command would ask on a terminal. */
export const YES_OPTION = { '--yes': 'Skips the confirmation on a terminal.' };

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
