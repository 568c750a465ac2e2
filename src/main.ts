import { parseCommandLine } from './config/command-line.ts';
import { ConfigError } from './config/config-error.ts';

/** Exit codes: 0 a clean stop, 1 the service could not start or failed, 2 it was called or configured wrongly; commands say theirs. */
async function main(argv: readonly string[]): Promise<number> {
  try {
    const { command, rest } = parseCommandLine([...argv]);
    switch (command) {
      case 'help': {
        const { help } = await import('./commands/help.ts');
        process.stdout.write(help(rest, process.stdout.columns ?? 100));
        return 0;
      }
      case 'version': {
        const { readPackageInfo } = await import('./package-info.ts');
        process.stdout.write(`${readPackageInfo().version}\n`);
        return 0;
      }
      case 'hash-password': {
        const { hashPasswordCommand } = await import('./commands/hash-password.ts');
        return await hashPasswordCommand(rest);
      }
      case 'deliveries': {
        const { deliveriesCommand } = await import('./commands/deliveries.ts');
        return await deliveriesCommand(rest);
      }
      case 'send': {
        const { sendCommand } = await import('./commands/send.ts');
        return await sendCommand(rest);
      }
      case 'migrate': {
        const { migrateCommand } = await import('./commands/migrate.ts');
        return await migrateCommand(rest);
      }
      case 'move': {
        const { moveCommand } = await import('./commands/move.ts');
        return await moveCommand(rest);
      }
      case 'serve': {
        // Loaded only now, so that help comes at once.
        const { serve } = await import('./serve.ts');
        return await serve(rest);
      }
    }
  } catch (error) {
    return explain(error);
  }
}

const EXPECTED: ReadonlySet<unknown> = new Set([
  'DATABASE_OPEN',
  'CANNOT_LISTEN',
  'HEALTH_CHECK_NAME',
  'MANAGEMENT_OPTIONS',
  'MOVE',
  'OUTCOME_UNKNOWN',
  'STORE_UNAVAILABLE',
  'USAGE',
]);

/** What the user can mend is one clear text; anything else is a bug and shows its stack. */
function explain(error: unknown): number {
  const { code, message } = Object(error) as { readonly code?: unknown; readonly message?: unknown };
  if (error instanceof ConfigError || EXPECTED.has(code)) process.stderr.write(`portico: ${message}\n`);
  else process.stderr.write(`portico: ${error instanceof Error ? error.stack : String(error)}\n`);
  return error instanceof ConfigError || code === 'USAGE' ? 2 : 1;
}

process.exitCode = await main(process.argv.slice(2));
