import { quote } from '../../core/quote.ts';
import { didYouMean } from '../../core/suggest.ts';
import { HttpProblem } from '../../http/problem.ts';
import {
  defaultOrder,
  USER_FIELDS,
  type UserField,
  type UserFilter,
  type UserSelection,
} from '../user-list.ts';
import { FILTERS, readFilter } from './filters.ts';
import { invalidParameter } from './refusals.ts';
import { readSort } from './sort.ts';

/** Users per page unless the client says otherwise, and at most. */
export const LIMIT = { default: 100, max: 1_000 } as const;

/** The parameters of a list that are no filters. */
const OTHERS = ['limit', 'cursor', 'sort', 'fields'] as const;
const KNOWN: readonly string[] = [...OTHERS, ...FILTERS];

/** What the parameters of a list ask for. */
export interface ListParameters extends UserSelection {
  readonly limit: number;
  readonly fields: readonly UserField[];
  readonly cursor: string | undefined;
  /** The parameters that count, without the cursor, as they came. */
  readonly given: readonly (readonly [name: string, value: string])[];
}

/**
 * Reads the parameters of a list; undefined when there are none. An unknown one or a wrong value is refused by an
 * HttpProblem that names it, or ignored if `isLenient`; a cursor is never ignored, because the list would begin anew.
 */
export function readListParameters(
  query: Readonly<Record<string, unknown>>,
  isLenient: boolean,
): ListParameters | undefined {
  const given: (readonly [string, string])[] = [];
  const filters: UserFilter[] = [];
  let cursor: string | undefined;
  let sort: UserSelection['order'] | undefined;
  let limit: number = LIMIT.default;
  let fields: readonly UserField[] = USER_FIELDS;

  function take(name: string, values: readonly string[]): void {
    const only = () => {
      const [value = '', ...more] = values;
      if (more.length > 0) throw invalidParameter(name, 'one value');
      return value;
    };
    if (name === 'cursor') cursor = only();
    else if (name === 'limit') limit = readLimit(only());
    else if (name === 'sort') sort = readSort(only());
    else if (name === 'fields') fields = readFields(only());
    else filters.push(readFilter(name, values));
    if (name !== 'cursor') given.push(...values.map((value) => [name, value] as const));
  }

  for (const [name, value] of Object.entries(query)) {
    const values = [value].flat().map(String);
    try {
      if (!KNOWN.includes(name)) throw unknownParameter(name);
      take(name, values);
    } catch (error) {
      if (!isLenient || name === 'cursor') throw error;
    }
  }
  if (given.length === 0 && cursor === undefined) return undefined;
  return { filters, order: sort ?? defaultOrder(filters), limit, fields, cursor, given };
}

/** Reads a set of fields; they come in the order of a whole user. */
export function readFields(text: string): readonly UserField[] {
  const named = text.split(',');
  const unknown = named.some((name) => !USER_FIELDS.includes(name as UserField));
  if (unknown)
    throw invalidParameter('fields', `fields of a user (${USER_FIELDS.join(', ')}) with commas between`);
  return USER_FIELDS.filter((field) => named.includes(field));
}

/** A user's JSON with some of its fields. */
export function onlyFields(user: string, fields: readonly UserField[]): string {
  const whole = JSON.parse(user) as Readonly<Record<UserField, unknown>>;
  return JSON.stringify(Object.fromEntries(fields.map((field) => [field, whole[field]])));
}

function readLimit(text: string): number {
  const limit = /^[1-9]\d{0,3}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > LIMIT.max)
    throw invalidParameter('limit', `a whole number from 1 to ${LIMIT.max}`);
  return limit;
}

function unknownParameter(name: string): HttpProblem {
  const message = `There is no parameter ${quote(name)}${didYouMean(name, KNOWN)}`;
  return new HttpProblem(400, 'UNKNOWN_PARAMETER', message);
}
