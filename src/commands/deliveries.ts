import { quote } from '../core/quote.ts';
import { didYouMean } from '../core/suggest.ts';
import { endWithReader } from './output.ts';
import { UsageError } from './usage-error.ts';

type Run = (argv: readonly string[]) => Promise<number>;

/** Loaded when it is called for, so that a list does not wait for what only a replay needs. */
const parts: ReadonlyMap<string, () => Promise<Run>> = new Map([
  ['list', async () => (await import('./deliveries/list.ts')).listDeliveries],
  ['show', async () => (await import('./deliveries/show.ts')).showDelivery],
  ['tail', async () => (await import('./deliveries/tail.ts')).tailDeliveries],
  ['replay', async () => (await import('./deliveries/replay.ts')).replayDeliveries],
  ['discard', async () => (await import('./deliveries/discard.ts')).discardDeliveries],
]);

/**
 * What people do with deliveries, on the database itself, whether a service runs on it or not.
 * Resolves to the exit code: 0, 1 when nothing matched or something could not be done, 130 when it was interrupted.
 * Fails with UsageError, ConfigError, DatabaseOpenError or StoreUnavailableError.
 */
export async function deliveriesCommand(argv: readonly string[]): Promise<number> {
  const [name, ...rest] = argv;
  const names = [...parts.keys()];
  const load = parts.get(name ?? '');
  if (load === undefined) {
    const problem =
      name === undefined || name.startsWith('-')
        ? `deliveries needs one of ${names.join(', ')} behind it`
        : `${quote(name)} is not one of ${names.join(', ')}${didYouMean(name, names)}`;
    throw new UsageError([problem], 'deliveries');
  }
  const run = await load();
  endWithReader();
  return run(rest);
}
