import {
  type DeliveryFilter,
  type QueryTexts,
  readCount,
  readFilter,
  readListQuery,
} from '../../inbox/operations.ts';
import type { CommandArguments } from '../arguments.ts';

/** The options that select deliveries by what they are. */
export const FILTER_OPTIONS = {
  '--status <status>': 'Status of the deliveries: unhandled, processing, pending, dead, done or discarded.',
  '--event <name>': "Event of the deliveries, by the sender's name or the name in Portico.",
  '--source <name>': 'Source of the deliveries; "" for those sent to /webhook.',
  '--target <name>': 'Target of one of their jobs, such as handler:invoice or forward:billing.',
};
/** The options that select deliveries by their time of receipt and text. */
export const TIME_OPTIONS = {
  '--since <time>':
    'Earliest time of receipt: ISO 8601 (local time unless a zone is given), or an age like 15m, 2h or 3d.',
  '--text <text>': 'Text in the body of the deliveries, case-sensitive.',
  '--until <time>': 'Time of receipt before which deliveries match.',
};

/** How `deliveries show` and the bulk commands name a delivery. */
export const NAMING = "its id, the beginning of it, or the sender's id";

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

/** The list that the options of a command describe, by default of 20 deliveries. Throws UsageError. */
export function listOf(args: CommandArguments) {
  const problems: string[] = [];
  const list = readListQuery(texts(args, problems), Date.now(), { limit: 20 });
  if (problems.length > 0) throw args.misuse(...problems);
  return list;
}

/** The positive integer of the option `--<field>`. Throws UsageError. */
export function countOf<T>(args: CommandArguments, field: string, fallback: T): number | T {
  const problems: string[] = [];
  const count = readCount(texts(args, problems), field, fallback);
  if (problems.length > 0) throw args.misuse(...problems);
  return count;
}

function texts<F extends string>(args: CommandArguments, problems: string[]): QueryTexts<F> {
  return { text: (field) => args.value(`--${field}`), name: (field) => `--${field}`, problems };
}
