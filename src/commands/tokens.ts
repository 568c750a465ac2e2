import { runPart } from './argv/parts.ts';

/**
 * `portico tokens <part>`, on the database itself, whether or not a service runs on it. Resolves to the exit code: 0, 1
 * when an action failed. Rejects with UsageError, ConfigError, DatabaseOpenError or StoreUnavailableError.
 */
export function tokensCommand(argv: readonly string[]): Promise<number> {
  return runPart('tokens', PARTS, argv);
}

const PARTS = new Map([
  ['create', async () => (await import('./tokens/create.ts')).createToken],
  ['list', async () => (await import('./tokens/list.ts')).listTokens],
  ['revoke', async () => (await import('./tokens/revoke.ts')).revokeToken],
]);
