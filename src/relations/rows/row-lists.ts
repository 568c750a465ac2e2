import { type HttpProblem, parseJsonText } from '@portico/transport';
import type { MaybePromise } from '../../core/scheduler.ts';
import { didYouMean, quote } from '../../core/text.ts';
import { LIMIT } from '../lists.ts';
import { type Column, type Relation, USER_COLUMNS, USERS, type Value } from '../relation.ts';
import {
  type Condition,
  ConditionReader,
  invalidParameter,
  joined,
  type Relations,
  targetOf,
  unknownName,
} from './conditions.ts';

/** One column of an order; nulls come last in both directions. */
export interface RowOrder {
  /** The references to follow. */
  readonly path: readonly string[];
  readonly column: Column;
  readonly descending: boolean;
}

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
  /** JSON objects with commas between. */
  readonly json: string;
  readonly count: number;
  /** The values by which the first and the last row are sorted; undefined for a page without rows. */
  readonly first: readonly Value[] | undefined;
  readonly last: readonly Value[] | undefined;
  /** Whether more rows follow in the direction of reading. */
  readonly more: boolean;
}

/** A page would have to examine more rows than it may; `index` is what would serve it, empty if none would. */
export class UnindexedListError extends Error {
  override readonly name = 'UnindexedListError';
  readonly relation: string;
  readonly index: readonly string[];

  constructor(relation: string, index: readonly string[]) {
    super('No index serves the list');
    this.relation = relation;
    this.index = index;
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
  /** Fails with UnindexedListError. */
  page(request: RowPageRequest): MaybePromise<RowPage>;
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
): RowListParameters {
  const given: (readonly [string, string])[] = [];
  const found: { readonly path: readonly string[]; readonly condition: Condition }[] = [];
  let cursor: string | undefined;
  let order = withKey(relation, []);
  let limit: number = LIMIT.default;
  let fields = columnsOfRow(relation);

  function take(name: string, values: readonly string[]): void {
    const only = () => {
      const [value = '', ...more] = values;
      if (more.length > 0) throw invalidParameter(name, `"${name}" takes one value`);
      return value;
    };
    if (name === 'cursor') cursor = only();
    else if (name === 'limit') limit = readLimit(only());
    else if (name === 'sort') order = readSort(relations, relation, only());
    else if (name === 'fields') fields = readColumns(relation, only());
    else if (name === 'where') {
      const reader = new ConditionReader(relations, name);
      found.push({ path: [], condition: reader.readTree(relation, parseWhere(only())) });
    } else found.push(readFilter(relations, relation, name, values));
    if (name !== 'cursor') given.push(...values.map((value) => [name, value] as const));
  }

  const entries = Object.entries(query);
  if (entries.length > MAX_PARAMETERS)
    throw invalidParameter('', `A list takes at most ${MAX_PARAMETERS} parameters`);
  for (const [name, value] of entries) {
    try {
      take(name, [value].flat().map(String));
    } catch (error) {
      if (!isLenient || name === 'cursor') throw error;
    }
  }
  return { where: joined(relations, relation, found), order, limit, fields, cursor, given };
}

/** Reads a filter such as `author.name:prefix=J`. */
function readFilter(relations: Relations, relation: Relation, name: string, values: readonly string[]) {
  const colon = name.indexOf(':');
  const dotted = (colon === -1 ? name : name.slice(0, colon)).split('.');
  const test = colon === -1 ? '' : name.slice(colon + 1);
  const path = dotted.slice(0, -1);
  const last = dotted.at(-1) ?? '';
  if (path.length > 5) throw invalidParameter(name, `"${name}" crosses more than 5 relations (crossings)`);
  let at = relation;
  for (const each of path) {
    const target = targetOf(relations, at, each);
    if (target === undefined) throw unknownParameter(relations, at, name, each);
    at = target.relation;
  }
  const column = at.columns.find((each) => each.name === last);
  if (column === undefined) throw unknownParameter(relations, at, name, last);
  return { path, condition: new ConditionReader(relations, name).readParameter(column, test, values) };
}

function unknownParameter(
  relations: Relations,
  relation: Relation,
  parameter: string,
  name: string,
): HttpProblem {
  const what = unknownName(relations, relation, name, name === parameter ? OTHERS : []);
  return invalidParameter(parameter, `${quote(parameter)} ${what}`);
}

/** Reads an order such as `-published,author.name`, where `-` means descending. */
function readSort(relations: Relations, relation: Relation, text: string): readonly RowOrder[] {
  const order = text.split(',').map((term): RowOrder => {
    const descending = term.startsWith('-');
    const path = (descending ? term.slice(1) : term).split('.');
    const last = path.pop() ?? '';
    let at = relation;
    for (const name of path) {
      const target = targetOf(relations, at, name);
      if (target?.isReference !== true)
        throw invalidParameter(
          'sort',
          `"sort" goes over references, and ${quote(name)} is none of ${at.name}`,
        );
      at = target.relation;
    }
    const column = at.columns.find((each) => each.name === last);
    if (column !== undefined && !isSorted(column)) {
      const message = `"sort" cannot sort by ${quote(last)}, a column of ${column.type.kind}`;
      throw invalidParameter('sort', message);
    }
    if (column === undefined) {
      if (at.references.some(({ name }) => name === last))
        throw invalidParameter('sort', `"sort" ${unknownName(relations, at, last)}`);
      const names = at.columns.filter(isSorted).map(({ name }) => name);
      throw invalidParameter(
        'sort',
        `"sort" takes columns with commas between and "-" for descending, not ${quote(last)}${didYouMean(last, names)}`,
      );
    }
    return { path, column, descending };
  });
  const names = order.map(nameOf);
  if (new Set(names).size < names.length)
    throw invalidParameter('sort', '"sort" takes each column at most once');
  return withKey(relation, order);
}

/** Whether the values of a column have an order. */
function isSorted({ type }: Column): boolean {
  return type.kind !== 'json' && type.kind !== 'bytes';
}

/** The dotted name of a column in an order. */
export function nameOf({ path, column }: RowOrder): string {
  return [...path, column.name].join('.');
}

/** Ends an order with the columns of the key, in the direction of the column before them. */
function withKey(relation: Relation, order: readonly RowOrder[]): readonly RowOrder[] {
  const whole = [...order];
  const descending = order.at(-1)?.descending ?? false;
  for (const name of relation.key) {
    const isThere = order.some(({ path, column }) => path.length === 0 && column.name === name);
    const column = relation.columns.find((each) => each.name === name);
    if (!isThere && column !== undefined) whole.push({ path: [], column, descending });
  }
  return whole;
}

/** The indexes of the columns of a row without `fields`; undefined for all. Users have those of the contract. */
export function columnsOfRow({ name, columns }: Relation): readonly number[] | undefined {
  if (name !== USERS) return undefined;
  return columns.flatMap((column, i) => (USER_COLUMNS.includes(column.name) ? [i] : []));
}

/**
 * Reads a set of columns, in which `*` stands for those of a row; returns their indexes, in the order of the
 * row. Throws HttpProblem.
 */
export function readColumns(relation: Relation, text: string): readonly number[] {
  const names = relation.columns.map(({ name }) => name);
  const whole = columnsOfRow(relation)?.map((i) => names[i] ?? '') ?? names;
  const named = text.split(',').flatMap((name) => (name === '*' ? whole : [name]));
  const unknown = named.find((name) => !names.includes(name));
  if (unknown !== undefined) {
    const proposal = didYouMean(unknown, names);
    throw invalidParameter('fields', `"fields" takes columns of the row, not ${quote(unknown)}${proposal}`);
  }
  return names.flatMap((name, i) => (named.includes(name) ? [i] : []));
}

function readLimit(text: string): number {
  const limit = /^[1-9]\d{0,3}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= LIMIT.max) return limit;
  throw invalidParameter('limit', `"limit" takes a whole number from 1 to ${LIMIT.max}`);
}

function parseWhere(text: string): unknown {
  try {
    return parseJsonText(text);
  } catch {
    throw invalidParameter('where', '"where" takes a condition as JSON, such as {"title": {"prefix": "E"}}');
  }
}
