import type { OptionRule } from '../../config/sources/arguments.ts';

/** An option of one command. */
export interface CommandOption extends OptionRule {
  readonly flag: string;
  readonly description: string;
}

/** How a command is called. */
export interface CommandUsage {
  /** The command with its part: what stands behind `portico` and `portico help`. */
  readonly topic: string;
  /** What stands behind the topic: `<id>`, say. */
  readonly words: string;
  /** The most words that are no options. Default: none. */
  readonly mostWords?: number;
  readonly about: string;
  readonly options: readonly CommandOption[];
  readonly examples?: readonly string[];
  /** Whether it does without the configuration, and so takes none of its options. Default: false. */
  readonly standalone?: boolean;
}
