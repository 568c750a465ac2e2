import { quote } from '../core/quote.ts';
import { didYouMean } from '../core/suggest.ts';
import { DELIVERY_STATUSES, type DeliveryFilter } from './delivery-log.ts';
import { MOMENT, parseMoment } from './moment.ts';

/** The parts of a filter, as people write them. */
export const FILTER_FIELDS = ['status', 'event', 'source', 'since', 'until'] as const;

export type FilterField = (typeof FILTER_FIELDS)[number];

/** Texts by the names of their fields, and where to complain. */
export interface QueryTexts<F extends string> {
  /** What was given; undefined when nothing was. */
  text(field: F): string | undefined;
  /** How messages call the field: `--since`, say. */
  name(field: F): string;
  readonly problems: string[];
}

/** Reads which deliveries are meant; what is wrong goes to `problems`, and then the result is not to be used. */
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
  };
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined));
}

/** Reads a whole number from 1 to `most`; `fallback` when nothing was given. */
export function readCount<F extends string, T>(
  { text, name, problems }: QueryTexts<F>,
  field: F,
  fallback: T,
  most = Number.MAX_SAFE_INTEGER,
): number | T {
  const written = text(field);
  if (written === undefined) return fallback;
  const number = /^[1-9]\d{0,15}$/.test(written) ? Number(written) : Number.NaN;
  if (number <= most) return number;
  const range = most === Number.MAX_SAFE_INTEGER ? 'above 0' : `from 1 to ${most}`;
  problems.push(`${name(field)} must be a whole number ${range}, not ${quote(written)}`);
  return fallback;
}
