import { parseCommandLine } from './command-line.ts';
import { renderUsage } from './render-usage.ts';
import { renderHelp } from './service-help.ts';

/**
 * What `portico help` shows: about the command that `words` name, or about everything; for a terminal of so many
 * columns. Throws ConfigError for a command that does not exist.
 */
export function help(words: readonly string[], columns: number): string {
  // Only to find out whether there is such a command.
  parseCommandLine(words);
  return renderUsage(words, columns) ?? renderHelp(columns);
}
