import { codecOf } from '../../relations/codecs.ts';
import type { Column, ColumnType, Relation, Value } from '../../relations/relation.ts';
import { type Relations, targetOf } from '../../relations/rows/conditions.ts';
import type { RowOrder } from '../../relations/rows/orders.ts';
import type { RowSelection } from '../../relations/rows/row-lists.ts';
import { type Bound, name, type RowDialect } from '../dialects/row-dialects.ts';
import { ConditionWriter, conditionShape, foundBy, type Seek } from './conditions-sql.ts';
import { type RowSql, tableOf } from './row-sql.ts';

/** The alias of the listed rows. */
export const ROW = 'r';

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

/** What the text of a page's statement depends on. */
export interface PageShape extends RowSelection {
  /** The expressions to select. */
  readonly selected: string;
  /** Which values of the neighbouring row are null; undefined for the first page. */
  readonly isNull: readonly boolean[] | undefined;
  readonly backwards: boolean;
  /** What finds the rows, unless an index yields them in order; `where` has the other conditions. */
  readonly seek: Seek | undefined;
  /** Whether rows may be so large that none is read but those of the page. */
  readonly isWide: boolean;
  /** Further conditions in SQL on the listed rows. */
  readonly links?: readonly string[];
}

/**
 * Writes the statements of pages. Their parameters are the values of the seek and of the conditions, those of the
 * neighbouring row that are not null, and the number of rows. What an index yields in order is read in parts, one
 * for each number of equal leading terms, because an index can seek to the start of each part but not of their
 * union.
 */
export class PageSql {
  readonly #sql: RowSql;
  readonly #relations: Relations;
  /** The number of the first parameter of a term with guards. */
  readonly #firsts = new WeakMap<RowOrder, number>();

  constructor(sql: RowSql, relations: Relations) {
    this.#sql = sql;
    this.#relations = relations;
  }

  /**
   * The shape of the guards of an order. Appends their values to `values`, which are bound from the parameter `first` on
   * and come before those of the page.
   */
  guardShape(order: readonly RowOrder[], values: Bound[], first = 1): string {
    const shapes = order.map((term) => {
      if (term.guards === undefined) return '';
      this.#firsts.set(term, first + values.length);
      return term.guards.map((each) => conditionShape(each, this.#sql.dialect, values)).join();
    });
    return shapes.some((each) => each !== '') ? shapes.join(';') : '';
  }

  /** `writer` numbers the parameters. */
  write(shape: PageShape, writer = new ConditionWriter(this.#sql.dialect)): string {
    const { where, order, selected, isNull, backwards, seek, links = [] } = shape;
    const { dialect, table, relation } = this.#sql;
    const from = seek === undefined ? table : foundBy(relation, seek, writer);
    // A walk looks at few rows.
    const matches = seek === undefined ? writer.write(where, ROW) : writer.timed(where, ROW, relation.key[0]);
    const condition = [...links, matches].join(' AND ');
    const parameters = order.map(({ column }, i) => {
      const { type, compared } = dialect.storage(column.type);
      if (isNull === undefined || isNull[i] === true) return undefined;
      return compared(dialect.parameter(writer.next(), type));
    });
    const limit = `LIMIT ${dialect.parameter(writer.next(), 'bigint')} + 0`;
    const terms = this.#terms(order);
    const behind = isNull === undefined ? [] : this.#behind(terms, isNull, parameters, backwards);
    const all = this.#orderBy(terms, backwards);
    const select = (columns: string, conditions: readonly string[], orderBy: string) =>
      `SELECT ${columns} FROM ${from} AS ${ROW} WHERE ${[condition, ...conditions].join(' AND ')} ${orderBy} ${limit}`;
    const inner = (columns: string, needed: string): string => {
      // The rows are sorted in any case.
      if (seek !== undefined) {
        const either = behind.map(({ conditions }) => conditions.join(' AND '));
        return select(columns, either.length === 0 ? [] : [`(${either.join(' OR ')})`], all);
      }
      const parts = isNull === undefined ? this.#firstParts(terms) : behind;
      const part = (read: string, { conditions, same }: Part) =>
        select(read, conditions, this.#orderBy(terms, backwards, same));
      const [only, ...others] = parts;
      if (only !== undefined && others.length === 0) return part(columns, only);
      const union = parts.map((each) => `SELECT * FROM (${part(needed, each)}) AS part`);
      return `SELECT ${columns} FROM (${union.join(' UNION ALL ')}) AS ${ROW} ${all} ${limit}`;
    };
    if (!shape.isWide) return inner(selected, `${ROW}.*`);
    const key = relation.key.map((column) => `${ROW}.${name(column)}`).join(', ');
    const joined = relation.key.map((column) => `${ROW}.${name(column)} = page.${name(column)}`);
    return `SELECT ${selected} FROM (${inner(key, this.#sorting(order))}) AS page JOIN ${table} AS ${ROW} ON ${joined.join(' AND ')} ${all}`;
  }

  /** The order of the listed rows, behind other terms. */
  orderBy(order: readonly RowOrder[], before: string): string {
    return this.#orderBy(this.#terms(order), false).replace('ORDER BY ', `ORDER BY ${before}, `);
  }

  #terms(order: readonly RowOrder[]): readonly Term[] {
    return order.flatMap((each, nth): readonly Term[] => {
      const value = { order: each, nth, isFlag: false };
      return this.#isNullable(each) ? [{ ...value, isFlag: true }, value] : [value];
    });
  }

  /** The columns by which rows are found and sorted. */
  #sorting(order: readonly RowOrder[]): string {
    const { relation } = this.#sql;
    const names = order.flatMap(({ path: [step], column }) => {
      if (step === undefined) return [column.name];
      return targetOf(this.#relations, relation, step)?.on.map(([here]) => here) ?? [];
    });
    return [...new Set([...relation.key, ...names])].map((each) => `${ROW}.${name(each)}`).join(', ');
  }

  /** The first page: the rows with and without a value of the first column apart, as an index has them. */
  #firstParts([first]: readonly Term[]): readonly Part[] {
    if (first?.isFlag !== true) return [{ conditions: [], same: new Set() }];
    const value = this.value(first.order);
    return [
      { conditions: [`${value} IS NOT NULL`], same: new Set([first]) },
      { conditions: [`${value} IS NULL`], same: new Set([first]) },
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
    const add = (condition: string, ...more: readonly Term[]) =>
      parts.push({ conditions: [...equal, condition], same: new Set([...same, ...more]) });
    for (const term of terms) {
      const { order, nth, isFlag } = term;
      const value = this.value(order);
      const parameter = parameters[nth];
      if (isFlag) {
        // Nulls come last, so behind a value there are nulls, and in front of nulls there are values.
        if (isNull[nth] === true && backwards) add(`${value} IS NOT NULL`, term);
        if (isNull[nth] !== true && !backwards) add(`${value} IS NULL`, term);
        if (isNull[nth] === true) equal.push(`${value} IS NULL`);
        same.add(term);
        continue;
      }
      // PostgreSQL sees that an index yields the order only if it names the column, though it is null.
      if (parameter === undefined) continue;
      const compared = this.#sql.dialect.storage(order.column.type).compared(value);
      add(`${compared} ${order.descending === backwards ? '>' : '<'} ${parameter}`);
      equal.push(`${compared} = ${parameter}`);
      same.add(term);
    }
    return parts;
  }

  #orderBy(terms: readonly Term[], backwards: boolean, same?: ReadonlySet<Term>): string {
    const differing = terms.filter((term) => same?.has(term) !== true);
    const texts = differing.map(({ order, isFlag }) => {
      const value = this.value(order);
      if (isFlag) return `(${value} IS NULL) ${backwards ? 'DESC' : 'ASC'}`;
      const compared = this.#sql.dialect.storage(order.column.type).compared(value);
      return `${compared} ${order.descending === backwards ? 'ASC' : 'DESC'}`;
    });
    return texts.length === 0 ? '' : `ORDER BY ${texts.join(', ')}`;
  }

  /** The expression of a column of the listed rows, or of one that references lead to. */
  value(term: RowOrder): string {
    const { path, column, guards } = term;
    const writer = new ConditionWriter(this.#sql.dialect, this.#firsts.get(term) ?? 1);
    const isSeen: string[] = [];
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
          ? `${tableOf(target.relation)} AS ${other}`
          : `JOIN ${tableOf(target.relation)} AS ${other} ON ${on}`,
      );
      alias = other;
      relation = target.relation;
      const guard = guards?.[i];
      if (guard !== undefined) isSeen.push(writer.write(guard, other));
    }
    const own = `${alias}.${name(column.name)}`;
    return path.length === 0
      ? own
      : `(SELECT ${own} FROM ${joins.join(' ')} WHERE ${[inner, ...isSeen].join(' AND ')})`;
  }

  /** Whether a row may have no value to be sorted by. */
  #isNullable({ path, column }: RowOrder): boolean {
    return path.length > 0 || column.nullable;
  }
}

/** What of a row becomes JSON: a member for each column. */
interface JsonMember {
  readonly column: Pick<Column, 'name' | 'type' | 'nullable'>;
  /** The expression of the column's value. */
  readonly value: string;
}

/**
 * The expression of a JSON object with these members as text on PostgreSQL, byte for byte as the codecs write it;
 * undefined if PostgreSQL writes one of the values in another way.
 */
export function jsonObject(members: readonly JsonMember[]): string | undefined {
  return written(members, ['{', '}'], ({ column }) => `${JSON.stringify(column.name)}:`);
}

/** The members of `jsonObject` without its braces. */
export function jsonMembers(members: readonly JsonMember[]): string | undefined {
  return written(members, ['', ''], ({ column }) => `${JSON.stringify(column.name)}:`);
}

/** The expression of a JSON array of the values, like `jsonObject`. */
export function jsonArray(members: readonly JsonMember[]): string | undefined {
  return written(members, ['[', ']'], () => '');
}

function written(
  members: readonly JsonMember[],
  [start, end]: readonly [string, string],
  head: (member: JsonMember) => string,
): string | undefined {
  const pieces: string[] = [];
  for (const [i, member] of members.entries()) {
    const text = jsonText(member);
    if (text === undefined) return undefined;
    pieces.push(literal(`${i === 0 ? start : ','}${head(member)}`), text);
  }
  if (members.length === 0 || end !== '') pieces.push(literal(members.length === 0 ? `${start}${end}` : end));
  return pieces.join(' || ');
}

function jsonText({ column: { type, nullable }, value }: JsonMember): string | undefined {
  const orNull = (text: string) => (nullable ? `coalesce(${text}, 'null')` : `(${text})`);
  switch (type.kind) {
    case 'serial':
    case 'integer':
    case 'boolean':
    case 'json':
      return orNull(`${value}::text`);
    case 'bigint':
    case 'decimal':
    case 'uuid':
      return orNull(`'"' || ${value}::text || '"'`);
    case 'text':
    case 'enum':
      return orNull(`to_json(${codecOf(type).postgres.json(value)})::text`);
    case 'date':
    case 'timestamp':
    case 'bytes':
      return orNull(`'"' || ${codecOf(type).postgres.json(value)} || '"'`);
    default:
      return undefined;
  }
}

/** The expression of a column's value as JSON text, which is not null; `own` is that of the value. */
export function jsonValue(column: Column, own: string, dialect: RowDialect): string {
  return orElse(column, presentJson(column.type, own, dialect), 'null');
}

function presentJson(type: ColumnType, own: string, dialect: RowDialect): string {
  switch (type.kind) {
    case 'text':
    case 'enum':
      return dialect.quoteJson(dialect.storage(type).json(own));
    case 'json':
      return `CAST(${own} AS text)`;
    case 'serial':
    case 'integer':
      return dialect.storage(type).json(own);
    case 'number':
    case 'boolean':
      return `CAST(${dialect.storage(type).json(own)} AS text)`;
    default:
      return `('"' || ${dialect.storage(type).json(own)} || '"')`;
  }
}

export function orElse({ nullable }: Column, text: string, otherwise: string): string {
  return nullable ? `coalesce(CAST(${text} AS text), '${otherwise}')` : text;
}

const literal = (text: string) => `'${text.replaceAll("'", "''")}'`;

/** Stands between the rows of a page: a control character, which no JSON text has. */
const SEPARATOR = '\u001e';

/** The aggregate of the texts of rows. */
export function joinedRows(text: string): string {
  return `string_agg(${text}, chr(${SEPARATOR.charCodeAt(0)}))`;
}

/** The rows of a page that a statement packs: their JSON, how many they are, and the arrays by which they are sorted. */
export type PackedRows = readonly [rows: unknown, count: unknown, keys?: unknown];

/** The members of the first and of the last row of a page, its JSON and the number of its rows. */
interface Unpacked {
  readonly json: string;
  readonly count: number;
  /** The first and the last row, or the arrays by which they are sorted, as JSON. */
  readonly first: unknown;
  readonly last: unknown;
}

/** Unpacks at most `limit` rows. */
export function unpacked([rows, counted, keys]: PackedRows, limit: number, backwards: boolean): Unpacked {
  const count = Number(counted);
  if (count === 0) return { json: '', count: 0, first: undefined, last: undefined };
  const text = trimmed(String(rows), count - limit, backwards);
  const sortedBy = keys === undefined ? text : trimmed(String(keys), count - limit, backwards);
  const first = sortedBy.indexOf(SEPARATOR);
  return {
    json: text.replaceAll(SEPARATOR, ','),
    count: Math.min(count, limit),
    first: JSON.parse(first === -1 ? sortedBy : sortedBy.slice(0, first)) as unknown,
    last: JSON.parse(sortedBy.slice(sortedBy.lastIndexOf(SEPARATOR) + 1)) as unknown,
  };
}

/** Leaves out the row behind the page, of which at most one was read. */
function trimmed(text: string, surplus: number, backwards: boolean): string {
  const taken = surplus > 0 ? text.slice(0, text.lastIndexOf(SEPARATOR)) : text;
  return backwards ? taken.split(SEPARATOR).toReversed().join(SEPARATOR) : taken;
}

/** The value that a member of a row's JSON stands for. */
export function sortedValue({ type }: Pick<Column, 'type'>, member: unknown): Value {
  if (member === null || member === undefined) return null;
  const parsed = codecOf(type).parse(member);
  return 'value' in parsed ? parsed.value : null;
}
