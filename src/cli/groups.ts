import { runPart } from './arguments.ts';

// Commands with subcommands. Each is loaded on call: a list needs none of the code of a replay.

const DELIVERIES = new Map([
  ['list', async () => (await import('./deliveries/list.ts')).listDeliveries],
  ['show', async () => (await import('./deliveries/show.ts')).showDelivery],
  ['tail', async () => (await import('./deliveries/tail.ts')).tailDeliveries],
  ['replay', async () => (await import('./deliveries/change.ts')).replayDeliveries],
  ['discard', async () => (await import('./deliveries/change.ts')).discardDeliveries],
]);

const USERS = new Map([
  ['list', async () => (await import('./users/list.ts')).listUsers],
  ['import', async () => (await import('./users/import.ts')).importCommand],
  ['export', async () => (await import('./users/export.ts')).exportCommand],
]);

/**
 * `portico deliveries <part>`, on the database itself, whether or not a service runs on it.
 * Resolves to the exit code: 0, 1 if nothing matched or an action failed, 130 if interrupted.
 * Rejects with UsageError, ConfigError, DatabaseOpenError or StoreUnavailableError.
 */
export function deliveriesCommand(argv: readonly string[]): Promise<number> {
  return runPart('deliveries', DELIVERIES, argv);
}

/**
 * `portico users <part>`, on the database itself, whether or not a service runs on it.
 * Resolves to the exit code: 0, 1 if lines were refused, 130 if interrupted.
 * Rejects with UsageError, ConfigError, DatabaseOpenError, ImportError or StoreUnavailableError.
 */
export function usersCommand(argv: readonly string[]): Promise<number> {
  return runPart('users', USERS, argv);
}
