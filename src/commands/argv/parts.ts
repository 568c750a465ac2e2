import { quote } from '../../core/quote.ts';
import { didYouMean } from '../../core/suggest.ts';
import { endWithReader } from '../terminal/output.ts';
import { UsageError } from './usage-error.ts';

type Run = (argv: readonly string[]) => Promise<number>;

/**
 * Runs the part of a command that the first word names. Each is loaded only when it is called. Rejects with UsageError for
 * another word.
 */
export async function runPart(
  command: string,
  parts: ReadonlyMap<string, () => Promise<Run>>,
  argv: readonly string[],
): Promise<number> {
  const [name, ...rest] = argv;
  const names = [...parts.keys()];
  const load = parts.get(name ?? '');
  if (load === undefined) {
    const problem =
      name === undefined || name.startsWith('-')
        ? `${command} needs one of ${names.join(', ')} behind it`
        : `${quote(name)} is not one of ${names.join(', ')}${didYouMean(name, names)}`;
    throw new UsageError([problem], command);
  }
  const run = await load();
  endWithReader();
  return run(rest);
}
