import type { GenerationalCache } from '../../core/generational-cache.ts';
import { type MaybePromise, whenReady } from '../../core/scheduler.ts';
import { maxBytesOf, SMALL } from '../../relations/codecs.ts';
import type { Column, Relation, Value } from '../../relations/relation.ts';
import { type Condition, type Relations, targetOf } from '../../relations/rows/conditions.ts';
import { nameOf } from '../../relations/rows/orders.ts';
import {
  CountLimitError,
  type RowListShape,
  type RowLists,
  type RowPage,
  type RowPageRequest,
  UnindexedListError,
} from '../../relations/rows/row-lists.ts';
import type { RowKey } from '../../relations/rows/rows.ts';
import { ALL, allOf } from '../../relations/rules/rule-trees.ts';
import { nestedRows, type Selection } from '../../relations/selections/selection.ts';
import { type Bound, type BoundText, name, type RowDialect } from '../dialects/row-dialects.ts';
import { SelectionSql } from '../selections/level-sql.ts';
import { jsonOf, type Member, memberOf, PAGE_BYTES, type PagePlan } from '../selections/levels.ts';
import {
  bestIndexed,
  ConditionWriter,
  conditionShape,
  conjuncts,
  crosses,
  findSeek,
  foundBy,
  isWalk,
  MAX_MATCHES,
  requireIndexes,
  type Seek,
  seekShape,
  unsought,
  wantedIndex,
} from './conditions-sql.ts';
import {
  joinedRows,
  jsonArray,
  jsonObject,
  type PackedRows,
  PageSql,
  ROW,
  sortedValue,
  unpacked,
} from './page-sql.ts';
import type { RowSql } from './row-sql.ts';

/** Runs the statements of lists. */
export interface ListEngine {
  readonly dialect: RowDialect;
  /** The texts of statements by their shape, those of all relations. */
  readonly statements: GenerationalCache<string>;
  /** Runs a read; a long one does not keep others waiting. */
  read(statement: BoundText, isLong?: boolean): MaybePromise<readonly (readonly unknown[])[]>;
  /** Reads a page with nested rows in one snapshot; a long one does not keep others waiting. */
  levels(plan: PagePlan, isLong: boolean): MaybePromise<RowPage>;
}

/** How many entries of an index a count looks at. */
const MAX_COUNTED = 10_000_000;
/** How many rows a count looks at to find those that meet a condition. */
const MAX_SCANNED = 1_000_000;
/** Of rows with more bytes the values by which they are sorted are read apart. */
const LARGE_ROW = 16 * 1024;
/** Rows of more bytes are read elsewhere than on the main thread. */
const SHORT_BYTES = 128 * 1024;
/** More rows than these, or more values, are read elsewhere, too. */
const SHORT = { rows: 200, values: 4_000 } as const;

/** What all pages of a list have in common. */
interface List extends RowListShape {
  /** How a page with nested rows is read. */
  readonly nested: Nested | undefined;
  /** Whether one index yields the rows in order. */
  readonly isWalk: boolean;
  /** The expressions that a page selects: the shown columns, then those by which rows are sorted. */
  readonly selected: string;
  /** Whether a statement packs the rows of a page as JSON. */
  readonly isPacked: boolean;
  /** Write the JSON of the shown columns, unless the statement does. */
  readonly members: readonly Member[];
  /** Where the values stand by which rows are sorted. */
  readonly keys: readonly { readonly at: number; read(stored: unknown): Value }[];
  /** The size of a row in bytes: at most, without its wide values, and the expression of the size of those. */
  readonly maxBytes: number;
  readonly ownBytes: number;
  readonly wideBytes: string | undefined;
  /** The shape of the conditions and of the order, and the values of the conditions. */
  readonly shape: string;
  readonly values: readonly Bound[];
  /** Those of the order, which come first. */
  readonly guardValues: readonly Bound[];
  /** The statements of walks, by direction and nulls of the cursor. */
  readonly walks: Map<string, string>;
}

interface Nested extends Pick<PagePlan, 'keys' | 'pieces'> {
  /** Whether no statement looks at more rows than it shows. */
  readonly isShort: boolean;
}

/** The lists of a relation's rows on either engine. */
export class RowListSql implements RowLists {
  readonly #sql: RowSql;
  readonly #engine: ListEngine;
  readonly #pages: PageSql;
  readonly #relations: Relations;
  readonly #selections: SelectionSql;
  /** As long as a shape is in use, what its pages have in common. */
  readonly #lists = new WeakMap<RowListShape, List>();

  constructor(sql: RowSql, engine: ListEngine, relations: Relations) {
    this.#sql = sql;
    this.#engine = engine;
    this.#pages = new PageSql(sql, relations);
    this.#relations = relations;
    this.#selections = new SelectionSql(sql.dialect, relations);
  }

  page(request: RowPageRequest): MaybePromise<RowPage> {
    const list = this.#listOf(request.shape);
    if (list.isWalk) return this.#read(list, request, undefined);
    return whenReady(this.#seek(list), (seek) => this.#read(list, request, seek));
  }

  /** What the pages of a list have in common. Throws UnindexedListError. */
  #listOf(shape: RowListShape): List {
    const known = this.#lists.get(shape);
    if (known !== undefined) return known;
    const { where, order, fields } = shape;
    requireIndexes(where);
    const { columns } = this.#sql.relation;
    const { dialect } = this.#engine;
    if (shape.selection !== undefined) return this.#nestedList(shape, shape.selection);
    const guardValues: Bound[] = [];
    const guards = this.#pages.guardShape(order, guardValues);
    const shown = fields ?? columns.map((_, i) => i);
    const maxBytes = sum(shown.map((i) => maxBytesOf((columns[i] as Column).type)));
    const packed = this.#packed(shape, shown, maxBytes);
    const selected = shown.map((i) => this.#sql.selectedAt(i, ROW));
    const keys = order.map((term) => {
      const { read, select } = dialect.storage(term.column.type);
      const own = term.path.length === 0 ? shown.findIndex((i) => columns[i] === term.column) : -1;
      return { at: own === -1 ? selected.push(select(this.#pages.value(term))) - 1 : own, read };
    });
    const read = [
      ...shown
        .flatMap((i) => columns[i] ?? [])
        .map((column) => ({ column, value: `${ROW}.${name(column.name)}` })),
      ...order.map((term) => ({ column: term.column, value: this.#pages.value(term) })),
    ];
    const wide = read.filter(({ column: { type } }) => maxBytesOf(type) > SMALL);
    const ownBytes = sum(read.map(({ column }) => memberBytes(column)));
    const values: Bound[] = [];
    const list: List = {
      ...shape,
      nested: undefined,
      isWalk: isWalk(this.#sql.relation, shape),
      isPacked: packed !== undefined,
      selected: packed ?? selected.join(', '),
      members: shown.map((i, nth) => memberOf(columns[i] as Column, dialect, nth)),
      keys,
      maxBytes: ownBytes + sum(wide.map(({ column }) => maxBytesOf(column.type))),
      ownBytes,
      wideBytes:
        wide.length === 0
          ? undefined
          : wide.map(({ column, value }) => dialect.size(value, column.type)).join(' + '),
      shape: `${orderShape(order)} ${shown.join()} ${guards}${conditionShape(where, dialect, values)}`,
      values,
      guardValues,
      walks: new Map(),
    };
    this.#lists.set(shape, list);
    return list;
  }

  /** What the pages of a list with nested rows have in common. */
  #nestedList(shape: RowListShape, selection: Selection): List {
    const { dialect } = this.#engine;
    const { where, order } = shape;
    for (const { rows } of nestedRows(selection)) requireIndexes(rows.where);
    const { pieces, isShort, maxBytes, bytes, ...rows } = this.#selections.rows(selection);
    const selected = [...rows.selected];
    const guardValues: Bound[] = [];
    this.#pages.guardShape(order, guardValues);
    const keys = order.map((term) => {
      const { type } = term.column;
      return { at: selected.push(dialect.storage(type).select(this.#pages.value(term))) - 1, type };
    });
    const values: Bound[] = [];
    const list: List = {
      ...shape,
      nested: { keys, pieces, isShort },
      isWalk: isWalk(this.#sql.relation, shape),
      isPacked: false,
      // A row may be constants only.
      selected: selected.join(', ') || '1',
      members: [],
      keys: [],
      maxBytes,
      ownBytes: 0,
      wideBytes: bytes,
      shape: `${orderShape(order)} ${selected.join()} ${conditionShape(where, dialect, values)}`,
      values,
      guardValues,
      walks: new Map(),
    };
    this.#lists.set(shape, list);
    return list;
  }

  /**
   * What a statement selects that packs rows: the JSON of each, and the values by which it is sorted if they are not
   * to be found in its JSON with little work.
   */
  #packed({ order }: RowListShape, shown: readonly number[], maxBytes: number): string | undefined {
    if (!this.#engine.dialect.packs) return undefined;
    const { columns } = this.#sql.relation;
    const members = shown.flatMap((i) => columns[i] ?? []);
    const row = jsonObject(members.map((column) => ({ column, value: `${ROW}.${name(column.name)}` })));
    const isInRow =
      maxBytes <= LARGE_ROW &&
      order.every(({ path, column }) => path.length === 0 && members.includes(column));
    const keys = jsonArray(
      order.map((term) => ({
        column: { ...term.column, nullable: term.column.nullable || term.path.length > 0 },
        value: this.#pages.value(term),
      })),
    );
    if (row === undefined || keys === undefined) return undefined;
    return isInRow ? `${row} AS j` : `${row} AS j, ${keys} AS k`;
  }

  /** Reads a page; of rows that may be large their sizes first. */
  #read(list: List, request: RowPageRequest, seek: Seek | undefined): MaybePromise<RowPage> {
    const { maxBytes, ownBytes, wideBytes } = list;
    const most = ownBytes === 0 ? request.limit : Math.max(1, Math.floor(PAGE_BYTES / ownBytes));
    const limit = Math.min(request.limit, most);
    const isMany = limit > SHORT.rows || limit * list.members.length > SHORT.values;
    const isLong = seek !== undefined || isMany;
    if (list.nested !== undefined) return this.#readNested(list, list.nested, request, { seek, isLong });
    if (wideBytes === undefined || maxBytes * limit <= PAGE_BYTES)
      return this.#readRows(list, request, { seek, isLong, limit });
    const sizes = this.#statement(list, request, { seek, selected: wideBytes, isWide: true, limit });
    return whenReady(this.#engine.read(sizes, isLong), (found) => {
      let bytes = 0;
      let rows = 0;
      for (const [size] of found) {
        const next = ownBytes + Number(size);
        if (rows > 0 && bytes + next > PAGE_BYTES) break;
        bytes += next;
        rows++;
      }
      const isLarge = bytes > SHORT_BYTES;
      return this.#readRows(list, request, {
        seek,
        isLong: isLong || isLarge,
        limit: Math.max(1, Math.min(limit, rows)),
        isWide: true,
      });
    });
  }

  #readNested(
    list: List,
    { keys, pieces, isShort }: Nested,
    request: RowPageRequest,
    { seek, isLong }: { readonly seek: Seek | undefined; readonly isLong: boolean },
  ): MaybePromise<RowPage> {
    const { limit, backwards } = request;
    const isWide = list.maxBytes * limit > PAGE_BYTES;
    const how = { seek, isWide, limit };
    const sizes = isWide
      ? this.#statement(list, request, { ...how, selected: list.wideBytes ?? '0' })
      : undefined;
    const rows = this.#statement(list, request, { ...how, selected: list.selected });
    return this.#engine.levels({ sizes, rows, limit, backwards, keys, pieces }, isLong || !isShort);
  }

  read(key: RowKey, selection: Selection, where: Condition = ALL): MaybePromise<string | undefined> {
    const { columns } = this.#sql.relation;
    const all = this.#sql.relation.key.map((name, i): Condition => {
      const column = columns[this.#sql.indexOf(name)];
      const value = key[i];
      if (column === undefined || value === null || value === undefined) return { is: 'or', all: [] };
      return { is: 'eq', column, value };
    });
    const shape: RowListShape = { where: allOf(...all, where), order: [], fields: undefined, selection };
    const page = this.page({ shape, limit: 1, next: undefined, backwards: false });
    return whenReady(page, ({ json, count }) => (count === 0 ? undefined : json));
  }

  #readRows(
    list: List,
    request: RowPageRequest,
    how: { seek: Seek | undefined; isLong: boolean; limit: number; isWide?: boolean },
  ): MaybePromise<RowPage> {
    const { limit } = how;
    const statement = this.#statement(list, request, { isWide: false, selected: list.selected, ...how });
    const { backwards } = request;
    return whenReady(this.#engine.read(statement, how.isLong), (found) =>
      list.isPacked ? unpack(list, found[0], limit, backwards) : build(list, found, limit, backwards),
    );
  }

  #statement(
    list: List,
    { next, backwards }: RowPageRequest,
    how: { seek: Seek | undefined; selected: string; isWide: boolean; limit: number },
  ): BoundText {
    const { dialect } = this.#engine;
    const { where, order, guardValues } = list;
    const { seek, selected, isWide } = how;
    const isNull = next?.map((value) => value === null);
    const position = `${Number(backwards)}${Number(isWide)}${selected === list.selected ? '' : 's'}${isNull?.map(Number).join('') ?? ''}`;
    const values: Bound[] = [...guardValues];
    let text = seek === undefined ? list.walks.get(position) : undefined;
    if (seek === undefined) values.push(...list.values);
    if (text === undefined) {
      const rest = seek === undefined ? where : unsought(where, seek);
      const found = seek === undefined ? '' : seekShape(seek, dialect, values);
      const rested = seek === undefined ? '' : conditionShape(rest, dialect, values);
      const shape = ['page', this.#sql.table, position, found, rested, list.shape].join(' ');
      text = this.cached(shape, () => {
        const how = { where: rest, order, selected, isNull, backwards, seek, isWide };
        const page = this.#pages.write(how, new ConditionWriter(dialect, 1 + guardValues.length));
        if (!list.isPacked || selected !== list.selected) return page;
        const keys = selected.endsWith(' AS k') ? `, ${joinedRows('k')}` : '';
        return `SELECT ${joinedRows('j')}, count(*)${keys} FROM (${page}) AS page`;
      });
      if (seek === undefined) list.walks.set(position, text);
    }
    for (const [i, { column }] of order.entries()) {
      const value = next?.[i];
      if (value !== null && value !== undefined) values.push(dialect.storage(column.type).bind(value));
    }
    values.push(how.limit + 1);
    return { text, values };
  }

  /** What finds few enough rows. Fails with UnindexedListError. */
  async #seek(list: RowListShape): Promise<Seek> {
    const { relation } = this.#sql;
    const seek = await findSeek(relation, list.where, (at, each) => this.isFew(at, each, MAX_MATCHES));
    if (seek === undefined) throw new UnindexedListError(relation, wantedIndex(relation, list));
    return seek;
  }

  /** Whether a seek finds at most `limit` rows. */
  async isFew(relation: Relation, seek: Seek, limit: number): Promise<boolean> {
    const { dialect } = this.#engine;
    const values: Bound[] = [];
    const shape = `few ${limit} ${relation.table} ${seekShape(seek, dialect, values)}`;
    const text = this.cached(shape, () => {
      const found = foundBy(relation, seek, new ConditionWriter(dialect), {
        selected: () => '1',
        limit: limit + 1,
      });
      return `SELECT count(*) FROM ${found} AS few`;
    });
    const [row] = await this.#engine.read({ text, values }, true);
    return Number(row?.[0]) <= limit;
  }

  async count(where: Condition): Promise<number> {
    requireIndexes(where);
    const { relation } = this.#sql;
    const { seek, isWhole } = bestIndexed(relation, where);
    if (isWhole) return this.#count(where, seek, MAX_COUNTED);
    const few = await findSeek(relation, where, (at, each) => this.isFew(at, each, MAX_MATCHES));
    return this.#count(where, few ?? seek, MAX_SCANNED);
  }

  /** Counts the rows that a seek finds, and that meet the other conditions. Fails with CountLimitError. */
  async #count(where: Condition, seek: Seek, limit: number): Promise<number> {
    const { dialect } = this.#engine;
    const { relation } = this.#sql;
    const values: Bound[] = [];
    const rest = unsought(where, seek);
    const found = seekShape(seek, dialect, values);
    const shape = `count ${limit} ${relation.table} ${found} ${conditionShape(rest, dialect, values)}`;
    const text = this.cached(shape, () => {
      const writer = new ConditionWriter(dialect);
      const isWhole = conjuncts(rest).length === 0;
      const from = foundBy(relation, seek, writer, {
        ...(isWhole ? { selected: () => '1' } : {}),
        limit: limit + 1,
      });
      const condition = isWhole ? writer.write(rest, ROW) : writer.timed(rest, ROW, relation.key[0]);
      // As a filter of the statement PostgreSQL can hash a condition on another relation, which FILTER asks row by row.
      if (crosses(rest))
        return `SELECT (SELECT count(*) FROM ${from} AS found), count(*) FROM ${from} AS ${ROW} WHERE ${condition}`;
      return `SELECT count(*), count(*) FILTER (WHERE ${condition}) FROM ${from} AS ${ROW}`;
    });
    const [row] = await this.#engine.read({ text, values }, true);
    if (Number(row?.[0]) > limit) throw new CountLimitError(relation.name, limit);
    return Number(row?.[1]);
  }

  /**
   * The statement that removes at most `limit` rows that meet a condition, and returns a row for each. Fails
   * with UnindexedListError.
   */
  async removal(where: Condition, limit: number): Promise<BoundText> {
    requireIndexes(where);
    const { table, relation } = this.#sql;
    const { dialect } = this.#engine;
    const shape: RowListShape = { where, order: [], fields: undefined };
    const seek = isWalk(relation, shape) ? undefined : await this.#seek(shape);
    const values: Bound[] = [];
    const asked = conditionShape(where, dialect, values);
    const first = seek === undefined ? 1 : values.length + 1;
    const found = seek === undefined ? '' : seekShape(seek, dialect, values);
    const rest = seek === undefined ? where : unsought(where, seek);
    const rested = seek === undefined ? '' : conditionShape(rest, dialect, values);
    const text = this.cached(`removal ${table} ${asked} ${found} ${rested}`, () => {
      const [outer, inner] = [new ConditionWriter(dialect), new ConditionWriter(dialect, first)];
      const key = (alias: string) => relation.key.map((column) => `${alias}.${name(column)}`).join(', ');
      // PostgreSQL tests the outer condition again if a row was changed meanwhile, but not the inner one.
      const condition = outer.timed(where, ROW, relation.key[0]);
      const from = seek === undefined ? table : foundBy(relation, seek, inner);
      const some = `SELECT ${key('few')} FROM ${from} AS few WHERE ${inner.timed(rest, 'few', relation.key[0])} LIMIT ${dialect.parameter(inner.next(), 'bigint')}`;
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
      const all: readonly Condition[] = [where, { is: 'some', ...target, condition: any }];
      if (!(await this.isFew(relation, { by: 'conditions', all }, 0))) found.push(inverse.relation);
    }
    return found;
  }

  /** A text of a statement by its shape, written unless it is kept. */
  cached(shape: string, write: () => string): string {
    const { statements } = this.#engine;
    const known = statements.get(shape);
    if (known !== undefined) return known;
    const text = write();
    statements.set(shape, text, 2 * (shape.length + text.length));
    return text;
  }
}

function orderShape(order: RowListShape['order']): string {
  return order.map((term) => `${term.descending ? '-' : ''}${nameOf(term)}`).join();
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);

/** The page that a statement has packed. */
function unpack(list: List, packed: readonly unknown[] = [], limit: number, backwards: boolean): RowPage {
  const rows = packed as unknown as PackedRows;
  const { first, last, ...page } = unpacked(rows, limit, backwards);
  const isArray = rows.length > 2;
  const keys = (row: unknown) => {
    if (row === undefined) return undefined;
    const members = row as Readonly<Record<string, unknown>>;
    return list.order.map(({ column }, i) => sortedValue(column, members[isArray ? i : column.name]));
  };
  return { ...page, first: keys(first), last: keys(last), more: Number(rows[1]) > limit };
}

/** The page of rows that a statement has selected. */
function build(
  list: List,
  found: readonly (readonly unknown[])[],
  limit: number,
  backwards: boolean,
): RowPage {
  const rows = found.length > limit ? found.slice(0, limit) : found;
  const ordered = backwards ? rows.toReversed() : rows;
  const keys = (row: readonly unknown[] | undefined) => row && list.keys.map(({ at, read }) => read(row[at]));
  return {
    json: jsonOf(ordered, list.members),
    count: ordered.length,
    first: keys(ordered[0]),
    last: keys(ordered.at(-1)),
    more: found.length > limit,
  };
}

/** What a member of a row counts beside its name and a wide value, in bytes: many small ones take the most time. */
const MEMBER = 32;

function memberBytes({ name: column }: Column): number {
  return MEMBER + column.length;
}
