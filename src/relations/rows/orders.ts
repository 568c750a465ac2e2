import { didYouMean, quote } from '../../core/text.ts';
import type { Column, Relation } from '../relation.ts';
import {
  type ColumnGuard,
  type Condition,
  invalidParameter,
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
  /** The conditions on the rows that the references lead to, one for each; the value of another row counts as null. */
  readonly guards?: readonly Condition[] | undefined;
}

/** Reads an order such as `-published,author.name`, where `-` means descending. Throws HttpProblem. */
export function readSort(
  relations: Relations,
  relation: Relation,
  text: string,
  {
    parameter = 'sort',
    guard,
  }: { readonly parameter?: string; readonly guard?: ColumnGuard | undefined } = {},
): readonly RowOrder[] {
  const order = text.split(',').map((term): RowOrder => {
    const descending = term.startsWith('-');
    const path = (descending ? term.slice(1) : term).split('.');
    const last = path.pop() ?? '';
    let at = relation;
    for (const name of path) {
      const target = targetOf(relations, at, name);
      if (target?.isReference !== true)
        throw invalidParameter(
          parameter,
          `"${parameter}" goes over references, and ${quote(name)} is none of ${at.name}`,
        );
      at = target.relation;
    }
    const column = at.columns.find((each) => each.name === last);
    if (column !== undefined) guard?.requireReadable(parameter, at, column);
    if (column !== undefined && !isSorted(column)) {
      const message = `"${parameter}" cannot sort by ${quote(last)}, a column of ${column.type.kind}`;
      throw invalidParameter(parameter, message);
    }
    if (column === undefined) {
      if (at.references.some(({ name }) => name === last))
        throw invalidParameter(parameter, `"${parameter}" ${unknownName(relations, at, last)}`);
      const names = at.columns.filter(isSorted).map(({ name }) => name);
      throw invalidParameter(
        parameter,
        `"${parameter}" takes columns with commas between and "-" for descending, not ${quote(last)}${didYouMean(last, names)}`,
      );
    }
    return { path, column, descending };
  });
  const names = order.map(nameOf);
  if (new Set(names).size < names.length)
    throw invalidParameter(parameter, `"${parameter}" takes each column at most once`);
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
export function withKey(relation: Relation, order: readonly RowOrder[]): readonly RowOrder[] {
  const whole = [...order];
  const descending = order.at(-1)?.descending ?? false;
  for (const name of relation.key) {
    const isThere = order.some(({ path, column }) => path.length === 0 && column.name === name);
    const column = relation.columns.find((each) => each.name === name);
    if (!isThere && column !== undefined) whole.push({ path: [], column, descending });
  }
  return whole;
}
