import { runPart } from './arguments.ts';

/** A list needs nothing of a replay. */
const PARTS = new Map([
  ['list', async () => (await import('./deliveries/list.ts')).listDeliveries],
  ['show', async () => (await import('./deliveries/show.ts')).showDelivery],
  ['tail', async () => (await import('./deliveries/tail.ts')).tailDeliveries],
  ['replay', async () => (await import('./deliveries/change.ts')).replayDeliveries],
  ['discard', async () => (await import('./deliveries/change.ts')).discardDeliveries],
]);

/**
 * `portico deliveries <part>`, on the database itself, whether or not a service runs on it.
 * Resolves to the exit code: 0, 1 when nothing matched or an action failed, 130 when interrupted.
 * Rejects with UsageError, ConfigError, DatabaseOpenError or StoreUnavailableError.
 */
export function deliveriesCommand(argv: readonly string[]): Promise<number> {
  return runPart('deliveries', PARTS, argv);
}
