import type { CommandIo } from './cli/command.ts';
import { loadCommand, parseCommandLine } from './cli/command-line.ts';
import { endWithReader, note } from './cli/terminal.ts';
import { isExpected } from './core/errors.ts';

/**
 * Runs a command; resolves to the exit code: 0 for a clean stop, 1 for a failure, 2 for a wrong call or
 * configuration. Each command documents others.
 * `io` replaces the streams, environment and signals of the process, except for `serve`.
 */
export async function main(argv: readonly string[], io: CommandIo = process): Promise<number> {
  try {
    const line = parseCommandLine(argv);
    const { run, argv: rest } = await loadCommand(line);
    // The service goes on when the reader of its log leaves.
    if (line.command.name !== 'serve') endWithReader(io);
    return await run(rest, io);
  } catch (error) {
    return explain(error, io);
  }
}

/** What the user can mend is one clear text; anything else is a bug and shows its stack. */
function explain(error: unknown, io: CommandIo): number {
  if (isExpected(error)) {
    note(io, `portico: ${error.message}`);
    return error.code === 'USAGE' || error.code === 'CONFIG_INVALID' ? 2 : 1;
  }
  note(io, `portico: ${error instanceof Error ? error.stack : String(error)}`);
  return 1;
}
