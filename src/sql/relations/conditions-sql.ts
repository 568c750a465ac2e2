import { folded } from '../../core/text.ts';
import type { Column, Relation } from '../../relations/relation.ts';
import type { Condition } from '../../relations/rows/conditions.ts';
import type { RowOrder } from '../../relations/rows/orders.ts';
import { type RowSelection, UnindexedListError } from '../../relations/rows/row-lists.ts';
import { type Bound, name, type RowDialect } from '../dialects/row-dialects.ts';
import { type Addition, tableOf, wholeRow } from './row-sql.ts';

/** The last code point of Unicode: no text with a prefix sorts after the prefix followed by it. */
const LAST_CHARACTER = '\u{10ffff}';

const SIGNS = { eq: '=', lt: '<', lte: '<=', gt: '>', gte: '>=' } as const;

/**
 * The shape of a condition: what its SQL depends on. Appends its values to `values`, in the order in which
 * `conditionText` numbers them.
 */
export function conditionShape(condition: Condition, dialect: RowDialect, values: Bound[]): string {
  switch (condition.is) {
    case 'and':
    case 'or':
      return `${condition.is}(${condition.all.map((each) => conditionShape(each, dialect, values)).join()})`;
    case 'not':
      return `not(${conditionShape(condition.condition, dialect, values)})`;
    case 'some':
    case 'none':
    case 'every': {
      const { is, relation, on } = condition;
      const inside = conditionShape(condition.condition, dialect, values);
      return `${is} ${relation.name} ${on.flat().join(' ')}(${inside})`;
    }
    case 'null':
      return `${condition.isNull ? 'null' : 'some'} ${condition.column.name}`;
    case 'in': {
      const { column } = condition;
      values.push(
        dialect.listOf(
          condition.values.map((value) => dialect.storage(column.type).bind(value)),
          folds(column),
        ),
      );
      return `in ${column.name}`;
    }
    case 'prefix':
      values.push(condition.text, condition.text + LAST_CHARACTER);
      return `prefix ${condition.column.name}`;
    case 'contains':
      values.push(folds(condition.column) ? folded(condition.text) : condition.text);
      return `contains ${condition.column.name}`;
    default:
      values.push(dialect.storage(condition.column.type).bind(condition.value));
      return `${condition.is} ${condition.column.name}`;
  }
}

function folds({ type }: Column): boolean {
  return type.kind === 'text' && type.fold;
}

/** Writes the SQL of conditions; the parameters are numbered from `first` on. */
export class ConditionWriter {
  readonly #dialect: RowDialect;
  #parameters: number;
  #aliases = 0;

  constructor(dialect: RowDialect, first = 1) {
    this.#dialect = dialect;
    this.#parameters = first - 1;
  }

  /** The number of the next parameter. */
  next(): number {
    return ++this.#parameters;
  }

  /** An alias that no other table of the statement has. */
  alias(): string {
    return `x${++this.#aliases}`;
  }

  /** The same as `write` for conditions on many rows, which may take long; `column` is one of theirs. */
  timed(condition: Condition, alias: string, column = ''): string {
    return `${this.#dialect.timely(alias, column, 'few')}${this.write(condition, alias)}`;
  }

  /** The SQL of a condition on the rows of a table by its alias; null stands for false. */
  write(condition: Condition, alias: string): string {
    switch (condition.is) {
      case 'and':
        if (condition.all.length === 0) return '1 = 1';
        return `(${condition.all.map((each) => this.write(each, alias)).join(' AND ')})`;
      case 'or':
        if (condition.all.length === 0) return '1 = 0';
        return `(${condition.all.map((each) => this.write(each, alias)).join(' OR ')})`;
      case 'not':
        return this.#not(this.write(condition.condition, alias));
      case 'some':
        return this.#exists(condition, alias, (inside) => inside);
      case 'none':
        return `NOT ${this.#exists(condition, alias, (inside) => inside)}`;
      case 'every':
        return `NOT ${this.#exists(condition, alias, (inside) => this.#not(inside))}`;
      default:
        return this.#leaf(condition, `${alias}.${name(condition.column.name)}`);
    }
  }

  #leaf(condition: Extract<Condition, { readonly column: Column }>, column: string): string {
    const { type } = condition.column;
    const storage = this.#dialect.storage(type);
    const compared = storage.compared(column);
    const parameter = () => storage.compared(this.#dialect.parameter(this.next(), storage.type));
    switch (condition.is) {
      case 'null':
        return `${column} IS ${condition.isNull ? '' : 'NOT '}NULL`;
      case 'in':
        return this.#dialect.isIn(compared, this.next(), storage.type);
      case 'prefix': {
        const bytes = storage.bytes ?? storage.compared;
        const given = () => bytes(this.#dialect.parameter(this.next(), storage.type));
        return `(${bytes(column)} >= ${given()} AND ${bytes(column)} < ${given()})`;
      }
      case 'contains':
        return this.#dialect.contains(
          column,
          this.#dialect.parameter(this.next(), storage.type),
          folds(condition.column),
        );
      case 'ne':
        return `(${compared} <> ${parameter()} OR ${column} IS NULL)`;
      default:
        return `${compared} ${SIGNS[condition.is]} ${parameter()}`;
    }
  }

  #not(condition: string): string {
    return `NOT coalesce(${condition}, ${this.#dialect.no})`;
  }

  #exists(
    { relation, on, condition }: Extract<Condition, { readonly on: unknown }>,
    alias: string,
    inside: (text: string) => string,
  ): string {
    const other = this.alias();
    const pairs = on.map(([here, there]) => `${other}.${name(there)} = ${alias}.${name(here)}`);
    const kind = relation.existing === undefined ? 'own' : 'existing';
    // Without pairs, it is a row by its key.
    const timely = on[0] === undefined ? '' : this.#dialect.timely(other, on[0][1], kind);
    const where = [...pairs, `${timely}${inside(this.write(condition, other))}`].join(' AND ');
    return `EXISTS (SELECT 1 FROM ${tableOf(relation)} AS ${other} WHERE ${where})`;
  }
}

/** Writes a condition on the rows of a table as a part of a statement, whose parameters it numbers from `nth` on. */
export function conditionAt(condition: Condition, alias: string, dialect: RowDialect): Addition {
  return (nth) => {
    const values: Bound[] = [];
    conditionShape(condition, dialect, values);
    return { text: new ConditionWriter(dialect, nth).write(condition, alias), values };
  };
}

/** The conditions of which a row must meet each. */
export function conjuncts(condition: Condition): readonly Condition[] {
  return condition.is === 'and' ? condition.all.flatMap(conjuncts) : [condition];
}

/** An index of a relation: its columns, and whether no two rows have the same values of them. */
interface Index {
  readonly columns: readonly string[];
  readonly isUnique: boolean;
}

/** The indexes of a relation; its references have one each if Portico has made its table. */
function indexesOf({ key, unique, indexes, references, existing }: Relation): readonly Index[] {
  return [
    { columns: key, isUnique: true },
    ...unique.map((columns) => ({ columns, isUnique: true })),
    ...indexes.map((columns) => ({ columns, isUnique: false })),
    ...(existing === undefined ? references : []).map(({ columns }) => ({ columns, isUnique: false })),
  ];
}

/** Maximum number of rows to filter and sort for one page: a few milliseconds of work. */
export const MAX_MATCHES = 10_000;
/** Maximum number of seeks that are tried for a list. */
const MAX_TRIES = 30;

type Crossing = Extract<Condition, { readonly on: unknown }>;

/** What finds few of a relation's rows by an index, so that they can be filtered and sorted. */
export type Seek =
  | { readonly by: 'conditions'; readonly all: readonly Condition[] }
  /** Few rows of another relation lead to them. */
  | { readonly by: 'crossing'; readonly crossing: Crossing; readonly inner: Seek };

const RANGES: ReadonlySet<string> = new Set(['lt', 'lte', 'gt', 'gte', 'prefix']);

/** The columns of which only rows with one value match. */
function fixedColumns(conditions: readonly Condition[]): ReadonlySet<string> {
  const found = conditions.flatMap((each): readonly Column[] =>
    each.is === 'eq' || (each.is === 'null' && each.isNull) ? [each.column] : [],
  );
  return new Set(found.map((column) => column.name));
}

/** Whether one index yields the rows of a list in order, at the same cost for every page. */
export function isWalk(relation: Relation, { where, order }: RowSelection): boolean {
  const conditions = conjuncts(where);
  const fixed = fixedColumns(conditions);
  const equal = fixedColumns(conditions.filter(({ is }) => is === 'eq'));
  const [first] = order;
  const rest = order.filter(({ path, column }) => path.length > 0 || !fixed.has(column.name));
  // Nulls come last in both directions, which an index does not have behind its first column.
  if (rest.some(({ path, column }, i) => path.length > 0 || (i > 0 && column.nullable))) return false;
  const isOneWay = rest.every(({ descending }) => descending === rest[0]?.descending);
  return indexesOf(relation).some(({ columns, isUnique }) => {
    const leading = columns.findIndex((column) => !fixed.has(column));
    const used = leading === -1 ? columns : columns.slice(0, leading);
    const covered = conditions.every((each) => {
      if (!('column' in each)) return false;
      if (each.is === 'eq' || (each.is === 'null' && each.isNull)) return used.includes(each.column.name);
      const isRange =
        RANGES.has(each.is) && each.column.name === (rest[0]?.column.name ?? first?.column.name);
      return isRange && columns[used.length] === each.column.name;
    });
    if (!covered) return false;
    if (isUnique && columns.every((column) => equal.has(column))) return true;
    const remaining = columns.slice(used.length);
    const unserved = rest.slice(remaining.length);
    const inOrder = remaining.every((column, i) => rest[i] === undefined || rest[i].column.name === column);
    if (!inOrder || !isOneWay) return false;
    // Every index ends with the key.
    return unserved.every(({ column }) => relation.key.includes(column.name));
  });
}

/**
 * Finds a seek for a condition; undefined if no index finds few enough rows. `isFew` says whether a seek finds
 * at most `MAX_MATCHES` rows.
 */
export async function findSeek(
  relation: Relation,
  where: Condition,
  isFew: (relation: Relation, seek: Seek) => Promise<boolean>,
): Promise<Seek | undefined> {
  let tries = 0;
  const isServed = async (at: Relation, seek: Seek) => tries++ < MAX_TRIES && (await isFew(at, seek));

  async function find(at: Relation, condition: Condition): Promise<Seek | undefined> {
    const conditions = conjuncts(condition);
    for (const all of [...indexed(at, conditions), []]) {
      const seek: Seek = { by: 'conditions', all };
      if (await isServed(at, seek)) return seek;
    }
    for (const crossing of conditions) {
      if (crossing.is !== 'some' || !isIndexed(at, here(crossing))) continue;
      const inner = await find(crossing.relation, crossing.condition);
      if (inner === undefined) continue;
      const seek: Seek = { by: 'crossing', crossing, inner };
      if (await isServed(at, seek)) return seek;
    }
    return undefined;
  }

  return find(relation, where);
}

/** The conditions that each index serves, most of them first. */
function indexed(relation: Relation, conditions: readonly Condition[]): readonly (readonly Condition[])[] {
  const fixed = fixedColumns(conditions);
  const found = indexesOf(relation).map(({ columns }) => {
    const leading = columns.findIndex((column) => !fixed.has(column));
    const used = new Set(leading === -1 ? columns : columns.slice(0, leading));
    const next = columns[used.size];
    return conditions.filter((each) => {
      if (!('column' in each)) return false;
      if (each.is === 'eq' || (each.is === 'null' && each.isNull)) return used.has(each.column.name);
      return each.column.name === next && (RANGES.has(each.is) || each.is === 'in');
    });
  });
  return found.filter(({ length }) => length > 0).toSorted((a, b) => b.length - a.length);
}

/** The conditions that the best index serves, and whether they are all. */
export function bestIndexed(
  relation: Relation,
  where: Condition,
): { readonly seek: Seek; readonly isWhole: boolean } {
  const conditions = conjuncts(where);
  const [all = []] = indexed(relation, conditions);
  return { seek: { by: 'conditions', all }, isWhole: all.length === conditions.length };
}

const here = ({ on }: Crossing) => on.map(([column]) => column);

/** Whether the first columns of an index are these. */
function isIndexed(relation: Relation, columns: readonly string[]): boolean {
  return indexesOf(relation).some((index) =>
    columns.every((column) => index.columns.slice(0, columns.length).includes(column)),
  );
}

/** The conditions of a list that its seek leaves. */
export function unsought(where: Condition, seek: Seek): Condition {
  const sought: readonly Condition[] = seek.by === 'crossing' ? [seek.crossing] : seek.all;
  return { is: 'and', all: conjuncts(where).filter((each) => !sought.includes(each)) };
}

/** The shape of a seek; appends its values like `conditionShape`. */
export function seekShape(seek: Seek, dialect: RowDialect, values: Bound[]): string {
  if (seek.by === 'conditions') return conditionShape({ is: 'and', all: seek.all }, dialect, values);
  const { crossing, inner } = seek;
  const found = seekShape(inner, dialect, values);
  const rest = conditionShape(unsought(crossing.condition, inner), dialect, values);
  return `by ${crossing.relation.name} ${crossing.on.flat().join(' ')}(${found} ${rest})`;
}

/**
 * Writes the rows that a seek finds as a table of a FROM clause: all their columns, or `selected` of an alias. What leads to them
 * stands first in a CROSS JOIN, which SQLite does not reorder: it would rather look at all rows.
 */
export function foundBy(
  relation: Relation,
  seek: Seek,
  writer: ConditionWriter,
  {
    selected = (alias) => wholeRow(relation, alias),
    limit = MAX_MATCHES,
  }: { readonly selected?: (alias: string) => string; readonly limit?: number } = {},
): string {
  const alias = writer.alias();
  const columns = selected(alias);
  if (seek.by === 'conditions') {
    const where = writer.write({ is: 'and', all: seek.all }, alias);
    return `(SELECT ${columns} FROM ${tableOf(relation)} AS ${alias} WHERE ${where} LIMIT ${limit})`;
  }
  const { crossing, inner } = seek;
  const found = foundBy(crossing.relation, inner, writer);
  const [other, few] = [writer.alias(), writer.alias()];
  const rest = writer.timed(unsought(crossing.condition, inner), other, crossing.on[0]?.[1]);
  const there = crossing.on.map(([, column]) => `${other}.${name(column)}`).join(', ');
  const pairs = crossing.on.map(([own, column]) => `${alias}.${name(own)} = ${few}.${name(column)}`);
  const leading = `(SELECT DISTINCT ${there} FROM ${found} AS ${other} WHERE ${rest}) AS ${few}`;
  return `(SELECT ${columns} FROM ${leading} CROSS JOIN ${tableOf(relation)} AS ${alias} WHERE ${pairs.join(' AND ')} LIMIT ${limit})`;
}

/** The index that would serve a list; empty if none would, or if an index with the same conditions is there already. */
export function wantedIndex(relation: Relation, { where, order }: RowSelection): readonly string[] {
  const { key, indexes } = relation;
  const conditions = conjuncts(where);
  const fixed = fixedColumns(conditions);
  const ranges = conditions.flatMap((each) =>
    'column' in each && !fixed.has(each.column.name) ? [each.column.name] : [],
  );
  const own = order.flatMap(({ path, column }: RowOrder) => (path.length === 0 ? [column.name] : []));
  const found = [...fixed, ...ranges.slice(0, 1)];
  const wanted = [...new Set([...found, ...own])];
  if (wanted.every((column) => key.includes(column))) return [];
  const isThere = found.length > 0 && isIndexed(relation, found);
  return isThere && !isWalk({ ...relation, indexes: [...indexes, wanted] }, { where, order }) ? [] : wanted;
}

/** Throws UnindexedListError if a condition on the rows behind an inverse would look at all rows of its relation. */
export function requireIndexes(where: Condition): void {
  const index = missingIndex(where);
  if (index !== undefined) throw new UnindexedListError(index.relation, index.columns);
}

/** The index without which a condition on the rows behind an inverse would look at all rows of its relation. */
function missingIndex(
  condition: Condition,
): { readonly relation: Relation; readonly columns: readonly string[] } | undefined {
  switch (condition.is) {
    case 'and':
    case 'or':
      for (const each of condition.all) {
        const missing = missingIndex(each);
        if (missing !== undefined) return missing;
      }
      return undefined;
    case 'not':
      return missingIndex(condition.condition);
    case 'some':
    case 'none':
    case 'every': {
      const { relation, on } = condition;
      const columns = on.map(([, there]) => there);
      return isIndexed(relation, columns) ? missingIndex(condition.condition) : { relation, columns };
    }
    default:
      return undefined;
  }
}

/** Whether a condition asks for rows of other relations. */
export function crosses(condition: Condition): boolean {
  switch (condition.is) {
    case 'some':
    case 'none':
    case 'every':
      return true;
    case 'and':
    case 'or':
      return condition.all.some(crosses);
    case 'not':
      return crosses(condition.condition);
    default:
      return false;
  }
}
