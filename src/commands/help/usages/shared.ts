import type { CommandOption } from '../command-usage.ts';

/** Options that several commands have. */
export const json: CommandOption = {
  flag: '--json',
  description: 'Prints one JSON document instead of text.',
};

/** The answer to a question that a command would ask on a terminal. */
export const yes: CommandOption = {
  flag: '--yes',
  description: 'Skips the confirmation on a terminal.',
};
