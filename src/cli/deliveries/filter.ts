import { shellWord } from '../../core/text.ts';
import {
  type DeliveryFilter,
  FILTER_FIELDS,
  type QueryTexts,
  readCount,
  readFilter,
} from '../../inbox/operations.ts';
import type { CommandArguments } from '../arguments.ts';

/** The filter that the options of a command describe. Throws UsageError. */
export function filterOf(args: CommandArguments): DeliveryFilter {
  const problems: string[] = [];
  const filter = readFilter(texts(args, problems), Date.now());
  if (args.has('--dead') && (filter.status ?? 'dead') !== 'dead') {
    problems.push('--dead and --status mean different deliveries; give one of them');
  }
  if (problems.length > 0) throw args.misuse(...problems);
  return args.has('--dead') ? { ...filter, status: 'dead' } : filter;
}

/** The positive integer of the option `--<field>`. Throws UsageError. */
export function countOf<T>(args: CommandArguments, field: string, fallback: T): number | T {
  const problems: string[] = [];
  const count = readCount(texts(args, problems), field, fallback);
  if (problems.length > 0) throw args.misuse(...problems);
  return count;
}

/** The filter of a command as shell words, each preceded by a space. */
export function filterWords(args: CommandArguments): string {
  const words = FILTER_FIELDS.flatMap((field) => {
    const value = args.value(`--${field}`);
    return value === undefined ? [] : [` --${field} ${shellWord(value)}`];
  });
  return words.join('');
}

function texts<F extends string>(args: CommandArguments, problems: string[]): QueryTexts<F> {
  return { text: (field) => args.value(`--${field}`), name: (field) => `--${field}`, problems };
}
