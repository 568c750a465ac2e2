import type { MaybePromise } from '../../core/scheduler.ts';
import { LIMIT } from '../lists.ts';
import type { Relation, Value } from '../relation.ts';
import { EMBED, SelectionReader } from '../selections/read-selection.ts';
import type { Selection } from '../selections/selection.ts';
import {
  type ColumnGuard,
  type Condition,
  type Filter,
  invalidParameter,
  joined,
  type Relations,
  readFilter,
  readWhere,
} from './conditions.ts';
import { type RowOrder, readSort, withKey } from './orders.ts';

/** The rows of a list, and their order. */
export interface RowSelection {
  readonly where: Condition;
  /** The last columns are the key, so that the order is total. */
  readonly order: readonly RowOrder[];
}

/** The rows of a list, and which of their columns a page shows. */
export interface RowListShape extends RowSelection {
  /** The indexes of the columns to show; undefined for all. */
  readonly fields: readonly number[] | undefined;
  /** What to show instead of `fields`, with rows of other relations. */
  readonly selection?: Selection;
}

/** A page of a list. What a list reads is kept with `shape`, so it must be the same object for all pages. */
export interface RowPageRequest {
  readonly shape: RowListShape;
  readonly limit: number;
  /** The values by which the neighbouring row is sorted: the one before the page, or after it if `backwards`. */
  readonly next: readonly Value[] | undefined;
  readonly backwards: boolean;
}

/** Rows of a list, always in its order. */
export interface RowPage {
  /** JSON objects with commas between; made when it is first read if there is `large`. */
  readonly json: string;
  /** The same in UTF-8 with its digest, of a page with nested rows that is so large that its text is not made. */
  readonly large?: { readonly bytes: Uint8Array; readonly digest: string };
  readonly count: number;
  /** The values by which the first and the last row are sorted; undefined for a page without rows. */
  readonly first: readonly Value[] | undefined;
  readonly last: readonly Value[] | undefined;
  /** Whether more rows follow in the direction of reading. */
  readonly more: boolean;
}

/** A page would have to examine more rows than it may; `remedy` says which index would serve it, if one would. */
export class UnindexedListError extends Error {
  override readonly name = 'UnindexedListError';
  readonly relation: string;
  readonly remedy: string | undefined;

  constructor({ name, table, existing }: Relation, index: readonly string[]) {
    super('No index serves the list');
    this.relation = name;
    const line = `indexes: [[${index.map((column) => `'${column}'`).join(', ')}]]`;
    const columns = index.map((column) => `"${column}"`).join(', ');
    const made = `Create an index in the database, CREATE INDEX ... ON "${table}" (${columns}), and declare it: ${line}`;
    const remedy = existing === undefined ? `Add to its declaration: ${line}` : made;
    this.remedy = index.length === 0 ? undefined : remedy;
  }
}

/** The rows of a relation cannot be counted without looking at more of them than allowed. */
export class CountLimitError extends Error {
  override readonly name = 'CountLimitError';
  readonly relation: string;
  /** How many rows may be looked at. */
  readonly limit: number;

  constructor(relation: string, limit: number) {
    super('Too many rows to count');
    this.relation = relation;
    this.limit = limit;
  }
}

/** Lists of the rows of a relation. All methods fail with StoreUnavailableError. */
export interface RowLists {
  /** Fails with UnindexedListError, and with SelectionLimitError. */
  page(request: RowPageRequest): MaybePromise<RowPage>;
  /** The JSON of the row with a key, if it meets a condition, or undefined. Fails with SelectionLimitError. */
  read(key: readonly Value[], selection: Selection, where?: Condition): MaybePromise<string | undefined>;
  /** The number of rows that meet a condition. Fails with UnindexedListError or CountLimitError. */
  count(where: Condition): Promise<number>;
}

/** The parsed parameters of a list. */
export interface RowListParameters extends RowListShape {
  readonly limit: number;
  readonly cursor: string | undefined;
  /** The accepted parameters as they were given, without the cursor. */
  readonly given: readonly (readonly [name: string, value: string])[];
}

const OTHERS: readonly string[] = ['limit', 'cursor', 'sort', 'fields', 'where'];
/** Maximum number of parameters. */
const MAX_PARAMETERS = 200;

/**
 * Reads the parameters of a list. Throws an HttpProblem for an unknown parameter or an invalid value, or
 * ignores it if `isLenient`; an invalid cursor is never ignored, because the list would start over.
 */
export function readRowList(
  relations: Relations,
  relation: Relation,
  query: Readonly<Record<string, unknown>>,
  isLenient: boolean,
  guard?: ColumnGuard,
): RowListParameters {
  const given: (readonly [string, string])[] = [];
  const found: Filter[] = [];
  const shown = new SelectionReader(relations, relation, guard);
  let cursor: string | undefined;
  let order = withKey(relation, []);
  let limit: number = LIMIT.default;

  function take(name: string, values: readonly string[]): void {
    const only = () => {
      const [value = '', ...more] = values;
      if (more.length > 0) throw invalidParameter(name, `"${name}" takes one value`);
      return value;
    };
    if (name === 'cursor') cursor = only();
    else if (name === 'limit') limit = readLimit(only());
    else if (name === 'sort') order = readSort(relations, relation, only(), { guard });
    else if (name === 'fields') shown.fields(only());
    else if (name === 'where') found.push(readWhere(relations, relation, only(), { guard }));
    else if (name.startsWith(EMBED)) shown.embed(name, values);
    else found.push(readFilter(relations, relation, name, values, { others: OTHERS, guard }));
    if (name !== 'cursor') given.push(...values.map((value) => [name, value] as const));
  }

  const entries = Object.entries(query);
  if (entries.length > MAX_PARAMETERS)
    throw invalidParameter('', `A list takes at most ${MAX_PARAMETERS} parameters (parameters)`);
  const isEmbed = ([name]: readonly [string, unknown]) => name.startsWith(EMBED);
  // What they are about is known behind `fields`.
  for (const [name, value] of [...entries.filter((each) => !isEmbed(each)), ...entries.filter(isEmbed)]) {
    try {
      take(name, [value].flat().map(String));
    } catch (error) {
      if (!isLenient || name === 'cursor') throw error;
    }
  }
  return { where: joined(relations, relation, found), order, limit, cursor, given, ...shown.shown };
}

function readLimit(text: string): number {
  const limit = /^[1-9]\d{0,3}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= LIMIT.max) return limit;
  throw invalidParameter('limit', `"limit" takes a whole number from 1 to ${LIMIT.max}`);
}
