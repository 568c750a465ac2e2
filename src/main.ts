import { type CommandName, parseCommandLine } from './cli/command-line.ts';
import { type CommandIo, note, runWith } from './cli/terminal.ts';
import { isExpected } from './core/errors.ts';

type Command = (rest: readonly string[]) => Promise<number>;

/**
 * Loads each command only when it is called: help and version load neither the configuration nor the service.
 */
const COMMANDS: Readonly<Record<CommandName, Command>> = {
  serve: async (rest) => (await import('./app/serve.ts')).serve(rest),
  init: async (rest) => (await import('./cli/init.ts')).initCommand(rest),
  health: async (rest) => (await import('./cli/health.ts')).healthCommand(rest),
  deliveries: async (rest) => (await import('./cli/groups.ts')).deliveriesCommand(rest),
  users: async (rest) => (await import('./cli/groups.ts')).usersCommand(rest),
  send: async (rest) => (await import('./cli/send.ts')).sendCommand(rest),
  tokens: async (rest) => (await import('./cli/access.ts')).tokensCommand(rest),
  migrate: async (rest) => (await import('./cli/database.ts')).migrateCommand(rest),
  move: async (rest) => (await import('./cli/database.ts')).moveCommand(rest),
  backup: async (rest) => (await import('./cli/database.ts')).backupCommand(rest),
  restore: async (rest) => (await import('./cli/database.ts')).restoreCommand(rest),
  'hash-password': async (rest) => (await import('./cli/access.ts')).hashPasswordCommand(rest),
  help: async (rest) => (await import('./cli/help.ts')).helpCommand(rest),
  version: async () => (await import('./cli/version.ts')).versionCommand(),
};

/**
 * Resolves to the exit code: 0 for a clean stop, 1 for a failure, 2 for a wrong call or configuration. Each
 * command documents others.
 * `io` replaces the streams, environment and signals of the process, except for `serve` and `health`.
 */
export function main(argv: readonly string[], io?: CommandIo): Promise<number> {
  return io === undefined ? run(argv) : runWith(io, () => run(argv));
}

async function run(argv: readonly string[]): Promise<number> {
  try {
    const { command, rest } = parseCommandLine(argv);
    return await COMMANDS[command](rest);
  } catch (error) {
    return explain(error);
  }
}

/** What the user can mend is one clear text; anything else is a bug and shows its stack. */
function explain(error: unknown): number {
  if (isExpected(error)) {
    note(`portico: ${error.message}`);
    return error.code === 'USAGE' || error.code === 'CONFIG_INVALID' ? 2 : 1;
  }
  note(`portico: ${error instanceof Error ? error.stack : String(error)}`);
  return 1;
}
