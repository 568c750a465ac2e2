/** An option of one command; the options of the configuration stand beside it. */
export interface CommandOption {
  readonly flag: string;
  /** What its value is called; without one it is a switch. */
  readonly value?: string;
  readonly description: string;
  /** Whether it can be given more than once. */
  readonly repeatable?: boolean;
  /** A word behind it may be a secret, which no message shows. */
  readonly secret?: boolean;
}

/** How a command is called. */
export interface CommandUsage {
  /** Behind `portico help`, and behind `portico` itself. */
  readonly topic: string;
  /** What stands behind the topic: `<id>`, say. */
  readonly words: string;
  /** The most words that are no options; default none. */
  readonly mostWords?: number;
  readonly about: string;
  readonly options: readonly CommandOption[];
  readonly examples?: readonly string[];
}
