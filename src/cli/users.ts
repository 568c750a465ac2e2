import { didYouMean, quote } from '../core/text.ts';
import { UsageError } from './command-line.ts';
import { endWithReader } from './terminal.ts';

type Run = (argv: readonly string[]) => Promise<number>;

/** Each is loaded only when it is called. */
const parts: ReadonlyMap<string, () => Promise<Run>> = new Map([
  ['list', async () => (await import('./users/list.ts')).listUsers],
  ['import', async () => (await import('./users/import.ts')).importCommand],
  ['export', async () => (await import('./users/export.ts')).exportCommand],
]);

/**
 * `portico users <part>`, on the database itself, whether or not a service runs on it. Resolves to the exit code: 0, 1
 * when lines were refused, 130 when interrupted. Rejects with UsageError, ConfigError, DatabaseOpenError, ImportError or
 * StoreUnavailableError.
 */
export async function usersCommand(argv: readonly string[]): Promise<number> {
  const [name, ...rest] = argv;
  const names = [...parts.keys()];
  const load = parts.get(name ?? '');
  if (load === undefined) {
    const problem =
      name === undefined || name.startsWith('-')
        ? `users needs one of ${names.join(', ')} behind it`
        : `${quote(name)} is not one of ${names.join(', ')}${didYouMean(name, names)}`;
    throw new UsageError([problem], 'users');
  }
  const run = await load();
  endWithReader();
  return run(rest);
}
