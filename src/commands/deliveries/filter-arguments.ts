import type { DeliveryFilter } from '../../inbox/delivery-log.ts';
import { FILTER_FIELDS, type QueryTexts, readCount, readFilter } from '../../inbox/delivery-query.ts';
import type { CommandArguments } from '../argv/command-arguments.ts';
import type { CommandUsage } from '../command-usage.ts';
import { UsageError } from '../usage-error.ts';

/** Which deliveries the options of a command mean. Throws UsageError. */
export function filterOf(args: CommandArguments, { topic }: CommandUsage): DeliveryFilter {
  const problems: string[] = [];
  const filter = readFilter(texts(args, problems), Date.now());
  if (args.has('--dead') && (filter.status ?? 'dead') !== 'dead') {
    problems.push('--dead and --status mean different deliveries; give one of them');
  }
  if (problems.length > 0) throw new UsageError(problems, topic);
  return args.has('--dead') ? { ...filter, status: 'dead' } : filter;
}

/** The number that an option gives, from 1 on. Throws UsageError. */
export function countOf<T>(args: CommandArguments, field: string, fallback: T, { topic }: CommandUsage) {
  const problems: string[] = [];
  const count = readCount(texts(args, problems), field, fallback);
  if (problems.length > 0) throw new UsageError(problems, topic);
  return count;
}

/** The filter of a command, to be typed again. */
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

function shellWord(text: string): string {
  return /^[\w.:+/-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
