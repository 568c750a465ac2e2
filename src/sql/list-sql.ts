import { DatabaseOpenError } from '../core/errors.ts';
import { folded, oneLine } from '../core/text.ts';
import type {
  OrderField,
  SortKeys,
  TextField,
  UserField,
  UserFilter,
  UserPageRequest,
  UserSelection,
} from '../relations/lists.ts';
import type { SearchLevel } from '../relations/user.ts';
import { isTooLong } from './statement-time.ts';

/** The rows of a page as the reading thread returns them. */
export interface PackedRows {
  /** The users as JSON objects separated by commas, in reading order; UTF-8. */
  readonly json: Uint8Array;
  readonly count: number;
  /** Whether there are more rows than fit the page. */
  readonly more: boolean;
  /** Id, name and email of the first and the last user, in reading order. */
  readonly first: readonly unknown[] | undefined;
  readonly last: readonly unknown[] | undefined;
  /** Identifies the state of all users; undefined if there are no users. */
  readonly state: string | undefined;
}

/**
 * Packs the rows of a page, whose columns are id, name, email, JSON and the state of all users. `backwards`
 * reverses them.
 */
export function packRows(
  rows: readonly (readonly unknown[])[],
  limit: number,
  backwards: boolean,
): PackedRows {
  const taken = rows.slice(0, limit);
  if (backwards) taken.reverse();
  const keysOf = (row: readonly unknown[] | undefined) => row?.slice(0, 3);
  const state = taken[0]?.[4];
  return {
    json: Buffer.from(taken.map((row) => String(row[3])).join()),
    count: taken.length,
    more: rows.length > limit,
    first: keysOf(taken[0]),
    last: keysOf(taken.at(-1)),
    state: state === undefined ? undefined : String(state),
  };
}

/** The texts of rows as the reading thread returns them. */
export interface PackedTexts {
  /** UTF-8. */
  readonly bytes: Uint8Array;
  /** Number of texts. */
  readonly count: number;
  /** Number of rows, with and without a text. */
  readonly looked: number;
  /** The other columns of the last row. */
  readonly last: readonly unknown[] | undefined;
  /** Whether further rows may follow, because the texts are large or took long. */
  readonly isCut: boolean;
  /** How long the statement took in milliseconds, if it looked at all its rows, whatever time they took. */
  readonly taken?: number;
}

/** A page of texts ends after this time, in milliseconds: each of its rows may take long. */
const PAGE_TIME = 100;

/** What bounds the texts of a page. */
export interface TextBounds {
  /** About the largest size of all of them. */
  readonly maxBytes: number;
  /** After how many milliseconds it ends. Default: `PAGE_TIME`. */
  readonly time?: number;
  /** Whether all rows of the statement are small and short to find, so that it costs less to read them at once. */
  readonly atOnce: boolean;
  /** Whether each row may take long and the statement looks at all of them: a long read, of which few run at once. */
  readonly isPaced?: boolean;
}

/**
 * Joins the texts in the first column of rows until they have `maxBytes` or have taken long; rows without a text are
 * counted only. Throws the error of a row that took too long if it is the first one; otherwise the page ends before it.
 */
export function packTexts(
  rows: Iterable<readonly unknown[]>,
  { maxBytes, atOnce, time = PAGE_TIME }: TextBounds,
  now = () => performance.now(),
): PackedTexts {
  if (atOnce) return packAll(Array.isArray(rows) ? rows : [...rows]);
  const end = now() + time;
  let isCut = false;
  let text = '';
  let [bytes, count, looked] = [0, 0, 0];
  let last: readonly unknown[] | undefined;
  try {
    for (const row of rows) {
      looked++;
      last = row;
      if (typeof row[0] === 'string') {
        text += row[0];
        count++;
        bytes += Buffer.byteLength(row[0]);
      }
      isCut = bytes >= maxBytes || now() > end;
      if (isCut) break;
    }
  } catch (error) {
    // The next page begins with this row, which then has all the time of a statement.
    if (looked === 0 || !isTooLong(error)) throw error;
    isCut = true;
  }
  return { bytes: Buffer.from(text), count, looked, last: last?.slice(1), isCut };
}

function packAll(rows: readonly (readonly unknown[])[]): PackedTexts {
  let text = '';
  for (const [own] of rows) text += String(own);
  const { length } = rows;
  return {
    bytes: Buffer.from(text),
    count: length,
    looked: length,
    last: rows.at(-1)?.slice(1),
    isCut: false,
  };
}

/**
 * How the users of a selection are found: either an index yields them in order, at the same cost for every
 * page, or the most selective filter finds at most `MAX_MATCHES` users, which are then filtered and sorted.
 */
type ListPlan =
  | {
      readonly kind: 'index-scan';
      readonly filter: UserFilter | undefined;
      readonly order: readonly OrderField[];
    }
  /** Without a seek filter, all users are examined. */
  | {
      readonly kind: 'filter-scan';
      readonly seek: UserFilter | undefined;
      readonly others: readonly UserFilter[];
    };

/** Maximum number of users to sort or filter for one page: a few milliseconds of work. */
export const MAX_MATCHES = 10_000;
/** Length of the indexed parts of texts (trigrams), in characters. */
const PART = 3;

/** Plans a selection with the indexes of the level `search`. */
export function planList({ filters, order }: UserSelection, search: SearchLevel): ListPlan {
  const [only] = filters;
  const scanned = filters.length > 1 ? undefined : scanOrder(only, order, search);
  if (scanned !== undefined) return { kind: 'index-scan', filter: only, order: scanned };
  const [seek] = filters.filter((filter) => isIndexed(filter, search)).toSorted((a, b) => rank(a) - rank(b));
  return { kind: 'filter-scan', seek, others: filters.filter((filter) => filter !== seek) };
}

/** The order in which an index yields the matches of a filter, if it is the requested order. */
function scanOrder(
  filter: UserFilter | undefined,
  order: readonly OrderField[],
  search: SearchLevel,
): readonly OrderField[] | undefined {
  const [first] = order;
  if (filter === undefined) return first?.field === 'id' || search !== 'none' ? order : undefined;
  const { field, match } = filter;
  if (field === 'id' || !isIndexed(filter, search)) return undefined;
  if (match === 'contains') return first?.field === 'id' ? order : undefined;
  if (match === 'prefix') return first?.field === field ? order : undefined;
  if (filter.values.length > 1) return undefined;
  // All matches have the same value of the field.
  const rest = order.filter((each) => each.field !== field);
  return rest[0]?.field === 'id' ? rest : undefined;
}

function isIndexed(filter: UserFilter, search: SearchLevel): boolean {
  if (filter.field === 'id') return true;
  if (filter.match === 'contains') return search === 'text' && [...filter.text].length >= PART;
  return search !== 'none';
}

/** Ranks the most selective filters first. */
function rank(filter: UserFilter): number {
  const { field, match } = filter;
  if (field === 'id') return 0;
  if (match === 'exact') return field === 'email' ? 1 : 2;
  if (match === 'contains') return 3;
  return field === 'email' ? 4 : 5;
}

/** A value bound to a statement. */
export type Bound = string | number | readonly (string | number)[];

/** Binds a value to a statement; returns its placeholder. */
type Bind = (value: Bound) => string;

/** The engine-specific parts of a query for users. */
export interface ListDialect {
  /** The placeholder of the nth value, counting from 1. */
  placeholder(nth: number, value: Bound): string;
  /** The expression by which a field is compared, sorted and indexed: texts ignore the case of A to Z. */
  key(field: UserField): string;
  /** The condition that a key is one of several case-folded values. */
  isOneOf(key: string, values: readonly (string | number)[], bind: Bind): string;
  /** The condition that one of the fields contains a case-folded text. */
  contains(fields: readonly TextField[], text: string, bind: Bind): string;
  /**
   * The same condition by an index; the text has at least three characters. If the index is a separate table,
   * `bounds` returns further conditions on its `id`, its order and its limit.
   */
  containing(fields: readonly TextField[], text: string, bind: Bind, bounds: () => string): string;
  /** Identifies the state of all users (see DatabaseUserStore). */
  readonly state: string;
  /** A JSON object of these fields of the row. */
  json(fields: readonly UserField[]): string;
}

/**
 * The indexes of users besides their ids. Opening a database without these options leaves the indexes as they
 * are.
 */
export interface UserIndexOptions {
  /** How lists can find users. */
  readonly search: SearchLevel;
  /** Whether emails must be unique. Default: false. */
  readonly uniqueEmail?: boolean;
}

/** The names of the indexes, the same on both engines. */
export const USER_INDEXES = ['users_name', 'users_email', 'users_email_unique', 'users_text'] as const;
export type UserIndex = (typeof USER_INDEXES)[number];

/** The indexes that the options need. */
export function neededIndexes({ search, uniqueEmail = false }: UserIndexOptions): ReadonlySet<UserIndex> {
  const needed = new Set<UserIndex>();
  if (uniqueEmail) needed.add('users_email_unique');
  if (search !== 'none') needed.add('users_name');
  if (search !== 'none' && !uniqueEmail) needed.add('users_email');
  if (search === 'text') needed.add('users_text');
  return needed;
}

/** Maximum number of emails listed in the error. */
export const MAX_DUPLICATES = 5;

/** The error for duplicate emails when they must be unique; lists each email with the ids of its users. */
export function duplicateEmails(rows: readonly (readonly [email: string, ids: string])[]): DatabaseOpenError {
  const named = rows
    .slice(0, MAX_DUPLICATES)
    .map(([email, ids]) => `${oneLine(email)} (users ${oneLine(ids)})`);
  const more = rows.length > MAX_DUPLICATES ? ', and more' : '';
  return new DatabaseOpenError(
    `users share an email: ${named.join(', ')}${more}. Change or delete all but one of each, or turn users.uniqueEmail (USERS_UNIQUE_EMAIL) off.`,
  );
}

/** A statement with its values. */
export interface BoundStatement {
  readonly text: string;
  readonly values: readonly Bound[];
  /** Whether it can take long if many users match. */
  readonly isLong: boolean;
}

type IndexScan = Extract<ListPlan, { readonly kind: 'index-scan' }>;
type FilterScan = Extract<ListPlan, { readonly kind: 'filter-scan' }>;

/** The range of a scan. */
interface Reach extends Pick<UserPageRequest, 'next' | 'backwards' | 'limit'> {
  /** The order of the keys in `next`. Default: the order of the scan. */
  readonly whole?: readonly OrderField[];
}

/** The range of a search in texts. */
interface Window {
  readonly limit: number;
  readonly order?: readonly OrderField[];
  readonly next?: SortKeys | undefined;
  readonly backwards?: boolean;
}

/** The last code point of Unicode: no text with a prefix sorts after the prefix followed by it. */
const LAST_CHARACTER = '\u{10ffff}';
const BOTH: readonly TextField[] = ['name', 'email'];

/** Builds the statements for a selection of users in the dialect of an engine. */
export class ListSql {
  readonly #dialect: ListDialect;

  constructor(dialect: ListDialect) {
    this.#dialect = dialect;
  }

  /**
   * The users of a page plus one, in the direction of reading: id, name, email, JSON, the state of all users.
   * A text that is not part of the order is null.
   */
  page(plan: ListPlan, request: UserPageRequest): BoundStatement {
    const { fields, limit, backwards, next, order } = request;
    const key = (text: TextField) => (order.some(({ field }) => field === text) ? text : 'NULL');
    const columns = `id, ${key('name')}, ${key('email')}, ${this.#dialect.json(fields)}, ${this.#dialect.state}`;
    if (plan.kind === 'index-scan') {
      const scan = this.#indexScan(columns, plan, { next, backwards, limit: limit + 1, whole: order });
      return { ...scan, isLong: scan.isLong || !isOrderOfIndex(plan.order) };
    }
    const { seek, others } = plan;
    return this.#statement(true, (bind) => {
      const found = this.#found(seek, bind);
      const where = others.map((filter) => this.#condition(filter, bind));
      if (next !== undefined) where.push(this.#behind(this.#terms(order, next, backwards), bind));
      const orderBy = this.#orderBy(order, backwards);
      return `SELECT ${columns} FROM ${found} ${allOf(where)} ${orderBy} LIMIT ${bind(limit + 1)} + 0`;
    });
  }

  /** The number of users that the seek filter of a plan matches, at most `MAX_MATCHES` + 1. */
  matches({ seek }: FilterScan): BoundStatement {
    return this.#statement(
      true,
      (bind) => `SELECT count(*) FROM ${this.#found(seek, bind, MAX_MATCHES + 1)}`,
    );
  }

  /** The number of users that match all filters. */
  filterScanCount({ seek, others }: FilterScan): BoundStatement {
    return this.#statement(true, (bind) => {
      const found = this.#found(seek, bind);
      return `SELECT count(*) FROM ${found} ${allOf(others.map((filter) => this.#condition(filter, bind)))}`;
    });
  }

  /** The `nth` user of a scan after `next`: id, name, email. */
  step(plan: IndexScan, next: SortKeys | undefined, nth: number): BoundStatement {
    const scan = this.#indexScan('id, name, email', plan, { next, backwards: false, limit: nth });
    return { ...scan, text: `${scan.text} OFFSET ${nth - 1}`, isLong: true };
  }

  /** The number of users of a scan after `next`, at most `limit`. */
  rest(plan: IndexScan, next: SortKeys | undefined, limit: number): BoundStatement {
    const scan = this.#indexScan('1', plan, { next, backwards: false, limit });
    return { ...scan, text: `SELECT count(*) FROM (${scan.text}) AS rest`, isLong: true };
  }

  #indexScan(
    columns: string,
    { filter, order }: IndexScan,
    { next, backwards, limit, whole = order }: Reach,
  ): BoundStatement {
    const keys =
      next && order.map(({ field }) => next[whole.findIndex((each) => each.field === field)] ?? '');
    const orderBy = this.#orderBy(order, backwards);
    return this.#statement(filter?.match === 'contains', (bind) => {
      const part = (selected: string, behind: readonly string[], equal: number) => {
        const where = [
          ...this.#scanned(filter, { limit, order, next: keys, backwards }, equal, bind),
          ...behind,
        ];
        return `SELECT ${selected} FROM users ${allOf(where)} ${orderBy} LIMIT ${bind(limit)} + 0`;
      };
      if (keys === undefined) return part(columns, [], 0);
      const terms = this.#terms(order, keys, backwards);
      if (terms.length === 1) return part(columns, [this.#behind(terms, bind)], 0);
      // One part per number of equal leading fields, because an index can seek to the start of each part but
      // not of their union.
      const parts = terms.map(({ key, sign, value }, equal) => {
        const same = terms.slice(0, equal).map((before) => `${before.key} = ${bind(before.value)}`);
        return `SELECT * FROM (${part('id, name, email', [...same, `${key} ${sign} ${bind(value)}`], equal)}) AS part`;
      });
      return `SELECT ${columns} FROM (${parts.join(' UNION ALL ')}) AS page ${orderBy} LIMIT ${bind(limit)} + 0`;
    });
  }

  /** The filter of a scan in the part where the first `equal` fields equal those of `next`. */
  #scanned(filter: UserFilter | undefined, window: Window, equal: number, bind: Bind): readonly string[] {
    if (filter === undefined) return [];
    if (filter.match !== 'prefix' || window.next === undefined)
      return [this.#condition(filter, bind, window)];
    if (equal > 0) return [];
    // With two bounds on the same side, the engine might use the wider one.
    const [from, to] = this.#prefix(filter, bind);
    const ascends = window.order?.[0]?.descending === window.backwards;
    return [ascends ? to() : from()];
  }

  #prefix({ field, text }: Extract<UserFilter, { readonly match: 'prefix' }>, bind: Bind) {
    const key = this.#dialect.key(field);
    const prefix = folded(text);
    return [() => `${key} >= ${bind(prefix)}`, () => `${key} < ${bind(prefix + LAST_CHARACTER)}`] as const;
  }

  #statement(isLong: boolean, write: (bind: Bind) => string): BoundStatement {
    const values: Bound[] = [];
    const text = write((value) => this.#dialect.placeholder(values.push(value), value));
    return { text, values, isLong };
  }

  #found(seek: UserFilter | undefined, bind: Bind, limit = MAX_MATCHES): string {
    const where = seek === undefined ? [] : [this.#condition(seek, bind, { limit })];
    return `(SELECT id, name, email FROM users ${allOf(where)} LIMIT ${limit}) AS found`;
  }

  /** `window` is given if the filter's index finds the users. */
  #condition(filter: UserFilter, bind: Bind, window?: Window): string {
    if (filter.match === 'contains') {
      const fields = filter.field === 'any' ? BOTH : [filter.field];
      const text = folded(filter.text);
      if (window === undefined) return this.#dialect.contains(fields, text, bind);
      const { order, next, backwards = false, limit } = window;
      const bounds = () => {
        const behind = order && next ? ` AND ${this.#behind(this.#terms(order, next, backwards), bind)}` : '';
        return `${behind} ${order ? this.#orderBy(order, backwards) : ''} LIMIT ${bind(limit)} + 0`;
      };
      return this.#dialect.containing(fields, text, bind, bounds);
    }
    if (filter.match === 'prefix') {
      return this.#prefix(filter, bind)
        .map((bound) => bound())
        .join(' AND ');
    }
    const key = this.#dialect.key(filter.field);
    const values = filter.values.map((value) => (typeof value === 'string' ? folded(value) : value));
    const [only] = values;
    if (values.length === 1 && only !== undefined) return `${key} = ${bind(only)}`;
    return this.#dialect.isOneOf(key, values, bind);
  }

  #orderBy(order: readonly OrderField[], backwards: boolean): string {
    const terms = order.map(
      ({ field, descending }) => `${this.#dialect.key(field)} ${descending === backwards ? 'ASC' : 'DESC'}`,
    );
    return `ORDER BY ${terms.join(', ')}`;
  }

  #terms(order: readonly OrderField[], keys: SortKeys, backwards: boolean): readonly Term[] {
    return order.map(({ field, descending }, i) => ({
      key: this.#dialect.key(field),
      sign: descending === backwards ? '>' : '<',
      value: keys[i] ?? '',
    }));
  }

  /** The condition for users after the values of the terms. */
  #behind(terms: readonly Term[], bind: Bind): string {
    const cases = terms.map(({ key, sign, value }, i) => {
      const equal = terms.slice(0, i).map((before) => `${before.key} = ${bind(before.value)}`);
      return [...equal, `${key} ${sign} ${bind(value)}`].join(' AND ');
    });
    return cases.length === 1 ? String(cases[0]) : `(${cases.join(' OR ')})`;
  }
}

/** Whether an index yields this order; otherwise users with equal first fields are sorted. */
function isOrderOfIndex([first, ...others]: readonly OrderField[]): boolean {
  return others.every(({ field, descending }) => field === 'id' && descending === first?.descending);
}

/** One field of an order, with the value to compare with. */
interface Term {
  readonly key: string;
  readonly sign: '<' | '>';
  readonly value: string | number;
}

function allOf(conditions: readonly string[]): string {
  return conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;
}

/** Column positions in a row of users. */
const COLUMN = { id: 0, name: 1, email: 2 } as const;

/** The sort keys of a user, whose row begins with id, name and email. */
export function sortKeys(row: readonly unknown[], order: readonly OrderField[]): SortKeys {
  return order.map(({ field }) => {
    const value = row[COLUMN[field]];
    return field === 'id' ? Number(value) : folded(String(value));
  });
}
