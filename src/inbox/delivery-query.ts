import { quote } from '../core/quote.ts';
import { didYouMean } from '../core/suggest.ts';
import { DELIVERY_STATUSES, type DeliveryFilter } from './delivery-log.ts';
import { MOMENT, parseMoment } from './moment.ts';

/** The fields of a filter, in a query string or on the command line. */
export const FILTER_FIELDS = ['status', 'event', 'source', 'since', 'until', 'text'] as const;

export type FilterField = (typeof FILTER_FIELDS)[number];

/** The given texts by field, and where problems are reported. */
export interface QueryTexts<F extends string> {
  /** The given text; undefined when absent. */
  text(field: F): string | undefined;
  /** The name of the field in messages, such as `--since`. */
  name(field: F): string;
  readonly problems: string[];
}

/** Parses a filter. Errors are added to `problems`; the result is then invalid. `now` is in milliseconds since the epoch. */
export function readFilter({ text, name, problems }: QueryTexts<FilterField>, now: number): DeliveryFilter {
  const given = text('status');
  const status = DELIVERY_STATUSES.find((known) => known === given);
  if (given !== undefined && status === undefined) {
    const hint = didYouMean(given, DELIVERY_STATUSES);
    problems.push(`${name('status')} must be one of ${DELIVERY_STATUSES.join(', ')}${hint}`);
  }
  const moment = (field: 'since' | 'until'): number | undefined => {
    const written = text(field);
    if (written === undefined) return undefined;
    const read = parseMoment(written, now);
    if (read === undefined) problems.push(`${name(field)} must be ${MOMENT}, not ${quote(written)}`);
    return read;
  };
  const filter = {
    status,
    event: text('event'),
    source: text('source'),
    since: moment('since'),
    until: moment('until'),
    text: text('text') || undefined,
  };
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined));
}

/** Parses a whole number from 1 to `max`; `fallback` when absent. */
export function readCount<F extends string, T>(
  { text, name, problems }: QueryTexts<F>,
  field: F,
  fallback: T,
  max = Number.MAX_SAFE_INTEGER,
): number | T {
  const written = text(field);
  if (written === undefined) return fallback;
  const number = /^[1-9]\d{0,15}$/.test(written) ? Number(written) : Number.NaN;
  if (number <= max) return number;
  const range = max === Number.MAX_SAFE_INTEGER ? 'above 0' : `from 1 to ${max}`;
  problems.push(`${name(field)} must be a whole number ${range}, not ${quote(written)}`);
  return fallback;
}
