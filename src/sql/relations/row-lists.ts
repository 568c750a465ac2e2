import { GenerationalCache } from '../../core/generational-cache.ts';
import { type MaybePromise, whenReady } from '../../core/scheduler.ts';
import type { Column, Relation, Value } from '../../relations/relation.ts';
import { type Condition, type Relations, targetOf } from '../../relations/rows/conditions.ts';
import {
  nameOf,
  type RowLists,
  type RowOrder,
  type RowPage,
  type RowPageRequest,
  type RowSelection,
  UnindexedListError,
} from '../../relations/rows/row-lists.ts';
import { MAX_MATCHES } from '../list-sql.ts';
import { ConditionWriter, conditionShape, conjuncts, indexesOf } from './conditions-sql.ts';
import { type Bound, type BoundText, name, type RowDialect, type RowSql } from './row-sql.ts';

/** Runs the statements of lists. */
export interface ListEngine {
  readonly dialect: RowDialect;
  /** Runs a read; a long one does not keep others waiting. */
  read(statement: BoundText, isLong?: boolean): MaybePromise<readonly (readonly unknown[])[]>;
}

/** Maximum size of all texts of statements in the cache, in bytes. */
const MAX_TEXTS = 4 * 1024 * 1024;
/** The alias of the listed rows. */
const ROW = 'r';

/** A term of an order in SQL: whether a column is null, or its value. */
interface Term {
  readonly order: RowOrder;
  /** Index of the order among those of the request. */
  readonly nth: number;
  /** Whether the term sorts by null, which comes last, or by value. */
  readonly isFlag: boolean;
}

/** Some of the rows of a page. */
interface Part {
  readonly conditions: readonly string[];
  /** The terms that are the same for all rows of the part; its index yields the rows in the order of the others. */
  readonly same: ReadonlySet<Term>;
}

/** The lists of a relation's rows on either engine. */
export class RowListSql implements RowLists {
  readonly #sql: RowSql;
  readonly #engine: ListEngine;
  readonly #relations: Relations;
  /** The texts of statements by their shape. */
  readonly #texts = new GenerationalCache<string>(MAX_TEXTS);

  constructor(sql: RowSql, engine: ListEngine, relations: Relations) {
    this.#sql = sql;
    this.#engine = engine;
    this.#relations = relations;
  }

  page(request: RowPageRequest): MaybePromise<RowPage> {
    const index = missingIndex(request.where);
    if (index !== undefined) throw new UnindexedListError(index.relation.name, index.columns);
    if (this.#isWalk(request)) return this.#readPage(request, false);
    return whenReady(this.#requireFew(request), () => this.#readPage(request, true));
  }

  async count(where: Condition): Promise<number> {
    const index = missingIndex(where);
    if (index !== undefined) throw new UnindexedListError(index.relation.name, index.columns);
    const rows = await this.#engine.read(this.#counting(where), true);
    return Number(rows[0]?.[0]);
  }

  /**
   * The statement that removes at most `limit` rows that meet a condition, and returns a row for each. Fails
   * with UnindexedListError.
   */
  async removal(where: Condition, limit: number): Promise<BoundText> {
    const index = missingIndex(where);
    if (index !== undefined) throw new UnindexedListError(index.relation.name, index.columns);
    if (!this.#isWalk({ where, order: [] })) await this.#requireFew({ where, order: [] });
    const values: Bound[] = [];
    const { dialect } = this.#engine;
    const shape = `removal ${conditionShape(where, dialect, values)}`;
    const text = this.#cached(shape, () => {
      const { table, relation } = this.#sql;
      const [outer, inner] = [new ConditionWriter(dialect), new ConditionWriter(dialect)];
      const key = (alias: string) => relation.key.map((column) => `${alias}.${name(column)}`).join(', ');
      // PostgreSQL tests the outer condition again if a row was changed meanwhile, but not the inner one.
      const condition = outer.write(where, ROW);
      const some = `SELECT ${key('few')} FROM ${table} AS few WHERE ${inner.write(where, 'few')} LIMIT ${dialect.parameter(inner.next(), 'bigint')}`;
      return `DELETE FROM ${table} AS ${ROW} WHERE ${condition} AND (${key(ROW)}) IN (${some}) RETURNING 1`;
    });
    return { text, values: [...values, limit] };
  }

  /** The relations with rows that forbid the removal of rows that meet a condition. */
  async referrersOf(where: Condition): Promise<readonly string[]> {
    const { relation } = this.#sql;
    const found: string[] = [];
    for (const inverse of relation.inverses) {
      const target = targetOf(this.#relations, relation, inverse.name);
      const reference = target?.relation.references.find((each) => each.name === inverse.reference);
      if (target === undefined || reference?.onDelete !== 'restrict') continue;
      const any: Condition = { is: 'and', all: [] };
      const all: Condition = { is: 'and', all: [where, { is: 'some', ...target, condition: any }] };
      const [few] = await this.#engine.read(this.#counting(all, 1), true);
      if (Number(few?.[0]) > 0) found.push(inverse.relation);
    }
    return found;
  }

  #counting(where: Condition, limit?: number): BoundText {
    const values: Bound[] = [];
    const shape = `${limit === undefined ? 'count' : 'few'} ${conditionShape(where, this.#engine.dialect, values)}`;
    const text = this.#cached(shape, () => {
      const condition = new ConditionWriter(this.#engine.dialect).write(where, ROW);
      const from = `FROM ${this.#sql.table} AS ${ROW} WHERE ${condition}`;
      if (limit === undefined) return `SELECT count(*) ${from}`;
      return `SELECT count(*) FROM (SELECT 1 ${from} LIMIT ${limit}) AS few`;
    });
    return { text, values };
  }

  #readPage(request: RowPageRequest, isLong: boolean): MaybePromise<RowPage> {
    const { limit, backwards, order } = request;
    return whenReady(this.#engine.read(this.#pageStatement(request), isLong), (found) => {
      const taken = found.slice(0, limit);
      if (backwards) taken.reverse();
      const rows = taken.map((row) => this.#sql.row(row).values);
      const keys = (i: number) => {
        const values = rows[i];
        const stored = taken[i];
        if (values === undefined || stored === undefined) return undefined;
        return order.map((term, nth) => this.#sortedBy(term, nth, values, stored));
      };
      return { rows, first: keys(0), last: keys(rows.length - 1), more: found.length > limit };
    });
  }

  /** The value by which a row is sorted. Those of other relations follow the row's own columns. */
  #sortedBy(
    { path, column }: RowOrder,
    nth: number,
    values: readonly Value[],
    stored: readonly unknown[],
  ): Value {
    const { columns } = this.#sql.relation;
    if (path.length === 0) return values[columns.findIndex((each) => each.name === column.name)] ?? null;
    return this.#engine.dialect.storage(column.type).read(stored[columns.length + 1 + nth]);
  }

  #pageStatement({ where, order, next, backwards, limit }: RowPageRequest): BoundText {
    const { dialect } = this.#engine;
    const values: Bound[] = [];
    const isNull = next?.map((value) => value === null);
    const shape = [
      'page',
      backwards,
      order.map((term) => `${term.descending ? '-' : ''}${nameOf(term)}`).join(),
      isNull?.map(Number).join(''),
      conditionShape(where, dialect, values),
    ].join(' ');
    for (const [i, { column }] of order.entries()) {
      const value = next?.[i];
      if (value !== null && value !== undefined) values.push(dialect.storage(column.type).bind(value));
    }
    values.push(limit + 1);
    return { text: this.#cached(shape, () => this.#pageText({ where, order }, isNull, backwards)), values };
  }

  /**
   * A page is read in parts, one per number of equal leading terms, because an index can seek to the start of
   * each part but not of their union.
   */
  #pageText(
    { where, order }: RowSelection,
    isNull: readonly boolean[] | undefined,
    backwards: boolean,
  ): string {
    const { dialect } = this.#engine;
    const writer = new ConditionWriter(dialect);
    const condition = writer.write(where, ROW);
    const parameters = order.map(({ column }, i) => {
      const { type, compared } = dialect.storage(column.type);
      if (isNull === undefined || isNull[i] === true) return undefined;
      return compared(dialect.parameter(writer.next(), type));
    });
    const limit = `LIMIT ${dialect.parameter(writer.next(), 'bigint')} + 0`;
    const terms = order.flatMap((each, nth): readonly Term[] => {
      const value = { order: each, nth, isFlag: false };
      return this.#isNullable(each) ? [{ ...value, isFlag: true }, value] : [value];
    });
    const parts =
      isNull === undefined ? this.#firstParts(terms) : this.#behind(terms, isNull, parameters, backwards);
    const table = this.#sql.table;
    const keys = order.map(({ path, column }, nth) => {
      if (path.length === 0) return 'NULL';
      return dialect.storage(column.type).select(this.#value(order[nth] as RowOrder));
    });
    const selected = order.some(({ path }) => path.length > 0)
      ? `${this.#sql.selected}, ${keys.join(', ')}`
      : this.#sql.selected;
    const partText = (columns: string, { conditions, same }: Part) =>
      `SELECT ${columns} FROM ${table} AS ${ROW} WHERE ${[condition, ...conditions].join(' AND ')} ${this.#orderBy(terms, backwards, same)} ${limit}`;
    const [only, ...others] = parts;
    if (only !== undefined && others.length === 0) return partText(selected, only);
    const union = parts.map((part) => `SELECT * FROM (${partText(`${ROW}.*`, part)}) AS part`);
    const orderBy = this.#orderBy(terms, backwards);
    return `SELECT ${selected} FROM (${union.join(' UNION ALL ')}) AS ${ROW} ${orderBy} ${limit}`;
  }

  /** The first page: the rows with and without a value of the first column apart, as an index has them. */
  #firstParts([first, second]: readonly Term[]): readonly Part[] {
    if (first?.isFlag !== true || second === undefined) return [{ conditions: [], same: new Set() }];
    const value = this.#value(first.order);
    return [
      { conditions: [`${value} IS NOT NULL`], same: new Set([first]) },
      { conditions: [`${value} IS NULL`], same: new Set([first, second]) },
    ];
  }

  /** The conditions of the rows behind the neighbouring one, in parts. */
  #behind(
    terms: readonly Term[],
    isNull: readonly boolean[],
    parameters: readonly (string | undefined)[],
    backwards: boolean,
  ): readonly Part[] {
    const parts: Part[] = [];
    const equal: string[] = [];
    const same = new Set<Term>();
    const add = (condition: string, ...more: readonly (Term | undefined)[]) =>
      parts.push({
        conditions: [...equal, condition],
        same: new Set([...same, ...more.filter((each) => each !== undefined)]),
      });
    for (const [i, term] of terms.entries()) {
      const { order, nth, isFlag } = term;
      const value = this.#value(order);
      const parameter = parameters[nth];
      if (isFlag) {
        // Nulls come last, so behind a value there are nulls, and in front of nulls there are values.
        if (isNull[nth] === true && backwards) add(`${value} IS NOT NULL`, term);
        if (isNull[nth] !== true && !backwards) add(`${value} IS NULL`, term, terms[i + 1]);
        if (isNull[nth] === true) equal.push(`${value} IS NULL`);
        same.add(term);
        continue;
      }
      if (parameter === undefined) {
        same.add(term);
        continue;
      }
      const compared = this.#engine.dialect.storage(order.column.type).compared(value);
      add(`${compared} ${order.descending === backwards ? '>' : '<'} ${parameter}`);
      equal.push(`${compared} = ${parameter}`);
      same.add(term);
    }
    return parts;
  }

  #orderBy(terms: readonly Term[], backwards: boolean, same?: ReadonlySet<Term>): string {
    const differing = terms.filter((term) => same?.has(term) !== true);
    const texts = differing.map(({ order, isFlag }) => {
      const value = this.#value(order);
      if (isFlag) return `(${value} IS NULL) ${backwards ? 'DESC' : 'ASC'}`;
      const compared = this.#engine.dialect.storage(order.column.type).compared(value);
      return `${compared} ${order.descending === backwards ? 'ASC' : 'DESC'}`;
    });
    return texts.length === 0 ? '' : `ORDER BY ${texts.join(', ')}`;
  }

  /** The expression of a column of the listed rows, or of one that references lead to. */
  #value({ path, column }: RowOrder): string {
    let inner = '';
    let alias = ROW;
    let relation: Relation | undefined = this.#sql.relation;
    const joins: string[] = [];
    for (const [i, step] of path.entries()) {
      const target: ReturnType<typeof targetOf> = relation && targetOf(this.#relations, relation, step);
      if (target === undefined) throw new Error(`${step} is no reference`);
      const other = `o${i}`;
      const on = target.on
        .map(([here, there]) => `${other}.${name(there)} = ${alias}.${name(here)}`)
        .join(' AND ');
      if (i === 0) inner = on;
      joins.push(
        i === 0
          ? `${name(target.relation.table)} AS ${other}`
          : `JOIN ${name(target.relation.table)} AS ${other} ON ${on}`,
      );
      alias = other;
      relation = target.relation;
    }
    const own = `${alias}.${name(column.name)}`;
    return path.length === 0 ? own : `(SELECT ${own} FROM ${joins.join(' ')} WHERE ${inner})`;
  }

  /** Whether a row may have no value to be sorted by. */
  #isNullable({ path, column }: RowOrder): boolean {
    return path.length > 0 || column.nullable;
  }

  /** Whether one index yields the rows in order, at the same cost for every page. */
  #isWalk({ where, order }: RowSelection): boolean {
    const conditions = conjuncts(where).filter((each) => each.is !== 'and');
    const fixed = fixedColumns(conditions);
    const [first] = order;
    const rest = order.filter(({ path, column }) => path.length > 0 || !fixed.has(column.name));
    if (rest.some(({ path }) => path.length > 0)) return false;
    const isOneWay = rest.every(({ descending }) => descending === rest[0]?.descending);
    const { key } = this.#sql.relation;
    return indexesOf(this.#sql.relation).some(({ columns, isUnique }) => {
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
      const remaining = columns.slice(used.length);
      if (isUnique && remaining.length === 0) return true;
      const unserved = rest.slice(remaining.length);
      const inOrder = remaining.every((column, i) => rest[i] === undefined || rest[i].column.name === column);
      if (!inOrder || !isOneWay) return false;
      // Rows that are equal in all columns of the index are sorted by their key.
      return unserved.every(({ column }) => key.includes(column.name));
    });
  }

  /** Fails with UnindexedListError if no index finds few enough rows. */
  async #requireFew({ where, order }: RowSelection): Promise<void> {
    const conditions = conjuncts(where);
    const fixed = fixedColumns(conditions);
    const found = indexesOf(this.#sql.relation)
      .map(({ columns }) => {
        const leading = columns.findIndex((column) => !fixed.has(column));
        const used = new Set(leading === -1 ? columns : columns.slice(0, leading));
        const next = columns[used.size];
        return conditions.filter((each) => {
          if (!('column' in each)) return false;
          if (each.is === 'eq' || (each.is === 'null' && each.isNull)) return used.has(each.column.name);
          return each.column.name === next && (RANGES.has(each.is) || each.is === 'in');
        });
      })
      .toSorted((a, b) => b.length - a.length);
    for (const seek of [...found.filter(({ length }) => length > 0), []]) {
      const [few] = await this.#engine.read(this.#counting({ is: 'and', all: seek }, MAX_MATCHES + 1), true);
      if (Number(few?.[0]) <= MAX_MATCHES) return;
    }
    throw new UnindexedListError(this.#sql.relation.name, this.#wanted(conditions, fixed, order));
  }

  /** The index that would serve a list. */
  #wanted(
    conditions: readonly Condition[],
    fixed: ReadonlySet<string>,
    order: readonly RowOrder[],
  ): readonly string[] {
    const ranges = conditions.flatMap((each) =>
      'column' in each && !fixed.has(each.column.name) ? [each.column.name] : [],
    );
    const own = order.flatMap(({ path, column }) => (path.length === 0 ? [column.name] : []));
    return [...new Set([...fixed, ...ranges.slice(0, 1), ...own])];
  }

  #cached(shape: string, write: () => string): string {
    const known = this.#texts.get(shape);
    if (known !== undefined) return known;
    const text = write();
    this.#texts.set(shape, text, 2 * (shape.length + text.length));
    return text;
  }
}

const RANGES: ReadonlySet<string> = new Set(['lt', 'lte', 'gt', 'gte', 'prefix']);

/** The columns of which only rows with one value match. */
function fixedColumns(conditions: readonly Condition[]): ReadonlySet<string> {
  const found = conditions.flatMap((each): readonly Column[] =>
    each.is === 'eq' || (each.is === 'null' && each.isNull) ? [each.column] : [],
  );
  return new Set(found.map((column) => column.name));
}

/** The index without which a condition on the rows behind an inverse would look at all rows of its relation. */
export function missingIndex(
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
      const isServed = indexesOf(relation).some((index) =>
        columns.every((column) => index.columns.slice(0, columns.length).includes(column)),
      );
      return isServed ? missingIndex(condition.condition) : { relation, columns };
    }
    default:
      return undefined;
  }
}
