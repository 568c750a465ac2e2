import { type Paint, paintFor } from '../core/paint.ts';
import { parseCommandLine } from './argv/command-line.ts';
import { commandHelp } from './help/command-help.ts';
import { renderHelp } from './help/render-help.ts';
import { serviceHelp } from './help/service-help.ts';
import { printPainted } from './terminal/output.ts';

/** `portico help [command]` and `--help`. Rejects with UsageError for a command that does not exist. */
export async function helpCommand(words: readonly string[]): Promise<number> {
  await printPainted(help(words, process.stdout.columns ?? 100, paintFor(process.stdout)));
  return 0;
}

/**
 * The help on the command that `words` name, or on everything; for a terminal of so many columns.
 * Throws UsageError for a command that does not exist.
 */
export function help(words: readonly string[], columns: number, paint?: Paint): string {
  // Called for its error.
  parseCommandLine(words);
  const sections = commandHelp(words);
  return renderHelp(sections.length === 0 ? serviceHelp() : sections, columns, paint);
}
