#!/usr/bin/env node
import { parseCommandLine } from './config/command-line.ts';
import { ConfigError } from './config/config-error.ts';

/** Exit codes: 0 a clean stop, 1 the service could not start or failed, 2 it was called or configured wrongly. */
async function main(argv: readonly string[]): Promise<number> {
  try {
    const { command, rest } = parseCommandLine([...argv]);
    switch (command) {
      case 'help': {
        const { renderHelp } = await import('./config/help.ts');
        process.stdout.write(renderHelp(process.stdout.columns ?? 100));
        return 0;
      }
      case 'version': {
        const { readPackageInfo } = await import('./package-info.ts');
        process.stdout.write(`${readPackageInfo().version}\n`);
        return 0;
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

/** What the user can mend is one clear text; anything else is a bug and shows its stack. */
function explain(error: unknown): number {
  const { code, message } = Object(error) as { readonly code?: unknown; readonly message?: unknown };
  const expected = code === 'DATABASE_OPEN' || code === 'CANNOT_LISTEN' || code === 'HEALTH_CHECK_NAME';
  if (error instanceof ConfigError || expected) process.stderr.write(`portico: ${message}\n`);
  else process.stderr.write(`portico: ${error instanceof Error ? error.stack : String(error)}\n`);
  return error instanceof ConfigError ? 2 : 1;
}

process.exitCode = await main(process.argv.slice(2));
