import { quote } from '../core/quote.ts';
import { didYouMean } from '../core/suggest.ts';
import { UsageError } from './argv/usage-error.ts';
import { endWithReader } from './terminal/output.ts';

type Run = (argv: readonly string[]) => Promise<number>;

/** Each is loaded only when it is called: a list needs nothing of a replay. */
const parts: ReadonlyMap<string, () => Promise<Run>> = new Map([
  ['list', async () => (await import('./deliveries/list.ts')).listDeliveries],
  ['show', async () => (await import('./deliveries/show.ts')).showDelivery],
  ['tail', async () => (await import('./deliveries/tail.ts')).tailDeliveries],
  ['replay', async () => (await import('./deliveries/replay.ts')).replayDeliveries],
  ['discard', async () => (await import('./deliveries/discard.ts')).discardDeliveries],
]);

/**
 * `portico deliveries <part>`, on the database itself, whether or not a service runs on it.
 * Resolves to the exit code: 0, 1 when nothing matched or an action failed, 130 when interrupted.
 * Rejects with UsageError, ConfigError, DatabaseOpenError or StoreUnavailableError.
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
