import { HttpProblem } from '@portico/transport';
import type { Relation, Value } from '../relation.ts';
import { type Condition, manyOf, type Relations, targetOf } from '../rows/conditions.ts';
import type { RowOrder } from '../rows/orders.ts';
import { LIMITS, type SelectionLimitError } from './limits.ts';

/**
 * What a read shows of the rows of a relation: columns, and rows of other relations within them. A selection is plain
 * data with its names resolved; `checkSelection` holds it within the limits. `RowLists` reads it: `page` with a
 * selection in its shape, or `read` for one row. They write the JSON of a row with its members in this order, with one
 * statement for each `NestedRows`:
 *
 *     const shape = { where, order, fields: undefined, selection };
 *     const { json } = await store.lists.page({ shape, limit: 100, next: undefined, backwards: false });
 *     const row = await store.lists.read(key, selection);
 *
 * Statements are kept with the selection object, so repeated reads should use the same one. Both methods fail with
 * SelectionLimitError rather than leave out rows.
 */
export interface Selection {
  readonly relation: Relation;
  readonly members: readonly SelectedMember[];
}

/** A member of a row's JSON. */
export type SelectedMember =
  /** A column by its index. */
  | {
      readonly is: 'column';
      readonly name: string;
      readonly column: number;
      /** Whether a number is written as a text. */
      readonly isText?: boolean;
    }
  /** The version of the row. */
  | { readonly is: 'version'; readonly name: string }
  /** The same JSON in each row. */
  | { readonly is: 'constant'; readonly name: string; readonly json: string }
  | { readonly is: 'rows'; readonly name: string; readonly rows: NestedRows };

/** Rows of another relation within each row: an object or null for a reference, else an array. */
export interface NestedRows {
  /** The name of the reference, inverse or many-to-many with those before it, such as `author.books`. */
  readonly path: string;
  readonly link: Link;
  /** The members of each; its relation is that of the link. */
  readonly selection: Selection;
  /** Which of them; a referenced row that does not meet it is null. */
  readonly where: Condition;
  /** Ends with the key; of no use for a reference. */
  readonly order: readonly RowOrder[];
  /** Maximum number per row of the level above. Without one, more than `LIMITS.perRow` are refused. */
  readonly limit: number | undefined;
  /** The values by which the row is sorted behind which the array begins; undefined for the start. */
  readonly after: readonly Value[] | undefined;
}

/** How rows are found from those of the level above. */
export interface Link {
  readonly relation: Relation;
  /** Pairs of columns, above and there, that are equal; with `through`, there is that relation. */
  readonly on: readonly (readonly [above: string, there: string])[];
  /** Whether at most one row is found. */
  readonly isReference: boolean;
  /** The rows that connect, and their pairs of columns with the rows that are found. */
  readonly through: { readonly relation: Relation; readonly on: Link['on'] } | undefined;
}

/** The link of a reference, an inverse or a many-to-many of a relation, or undefined. */
export function linkOf(relations: Relations, from: Relation, name: string): Link | undefined {
  const target = targetOf(relations, from, name);
  if (target !== undefined) return { ...target, through: undefined };
  const many = manyOf(relations, from, name);
  if (many === undefined) return undefined;
  const { through, target: other } = many;
  return {
    relation: other.relation,
    on: through.on,
    isReference: false,
    through: { relation: through.relation, on: other.on },
  };
}

/** The nested rows of a selection and of all below it, with their level. */
export function* nestedRows(
  { members }: Selection,
  level = 1,
): Generator<{ readonly rows: NestedRows; readonly level: number }> {
  for (const member of members) {
    if (member.is !== 'rows') continue;
    yield { rows: member.rows, level };
    yield* nestedRows(member.rows.selection, level + 1);
  }
}

/** Refuses a selection with too many levels or embeds; `parameter` is what it was read from. */
export function checkSelection(selection: Selection, parameter: string): void {
  let embeds = 0;
  for (const { level, rows } of nestedRows(selection)) {
    if (level > LIMITS.levels)
      throw tooMuch(parameter, `at most ${LIMITS.levels} levels (levels), and ${rows.path} is deeper`);
    if (++embeds > LIMITS.embeds)
      throw tooMuch(parameter, `at most ${LIMITS.embeds} embedded relations (embeds)`);
  }
}

function tooMuch(parameter: string, what: string): HttpProblem {
  const message = `"${parameter}" takes ${what}`;
  return new HttpProblem(400, 'LIMIT_EXCEEDED', message, { reasons: [{ detail: message, parameter }] });
}

/** The refusal of a read that reaches a limit: what to change, as the parameters of a list write it. */
export function limitProblem({ limit, path }: SelectionLimitError): HttpProblem {
  const parameter = `embed.${path}.limit`;
  const message = {
    perRow: `A row has more than ${LIMITS.perRow} of "${path}" (perRow); add ${parameter}, at most ${LIMITS.perRow}`,
    rows: `The embedded rows up to "${path}" are more than ${LIMITS.rows} (rows); add ${parameter}, or a lower "limit"`,
    bytes: `The embedded rows up to "${path}" have more than ${LIMITS.bytes} bytes (bytes); name fewer columns in "fields", or add ${parameter}`,
    scan: `More than ${LIMITS.rows} rows of "${path}" would have to be looked at (scan) to filter or sort them; leave out their filters and order, or add a lower "limit"`,
  }[limit];
  return new HttpProblem(400, 'LIMIT_EXCEEDED', message, { reasons: [{ detail: message, parameter }] });
}
