import type { OptionRule } from '../../config/sources/arguments.ts';

/** An option of one command. */
export interface CommandOption extends OptionRule {
  readonly flag: string;
  readonly description: string;
}

/** How a command is called. */
export interface CommandUsage {
  /** The command with its subcommand, as written behind `portico` and `portico help`. */
  readonly topic: string;
  /** What follows the topic, such as `<id>`. */
  readonly words: string;
  /** Maximum number of words that are no options. Default: 0. */
  readonly maxWords?: number;
  readonly about: string;
  readonly options: readonly CommandOption[];
  readonly examples?: readonly string[];
  /** Whether it reads no configuration, and so takes none of its options. Default: false. */
  readonly standalone?: boolean;
}
