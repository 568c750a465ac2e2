import { createHmac, timingSafeEqual } from 'node:crypto';
import { HttpProblem } from '@portico/transport';
import { type MaybePromise, whenReady } from '../core/scheduler.ts';
import { didYouMean, quote } from '../core/text.ts';
import { readUserId, type SearchLevel } from './user.ts';
import type { DatabaseUserStore } from './user-stores.ts';

/** The fields of a user, in the order of its JSON. */
export const USER_FIELDS = ['id', 'name', 'email'] as const;
export type UserField = (typeof USER_FIELDS)[number];
export type TextField = Exclude<UserField, 'id'>;

/** One field of an order. */
export interface OrderField {
  readonly field: UserField;
  readonly descending: boolean;
}

/** A condition on users; texts match regardless of the case of A to Z. */
export type UserFilter =
  /** The field has one of the values. */
  | { readonly field: 'id'; readonly match: 'exact'; readonly values: readonly number[] }
  | { readonly field: TextField; readonly match: 'exact'; readonly values: readonly string[] }
  | { readonly field: TextField; readonly match: 'prefix'; readonly text: string }
  /** `any`: one of the texts contains it. */
  | { readonly field: TextField | 'any'; readonly match: 'contains'; readonly text: string };

/** The users of a list, and their order. */
export interface UserSelection {
  readonly filters: readonly UserFilter[];
  /** The last field is the id, so that the order is total. */
  readonly order: readonly OrderField[];
}

/** A user's values of the fields of an order, texts folded. */
export type SortKeys = readonly (string | number | null)[];

/** A page of a list. */
export interface UserPageRequest extends UserSelection {
  readonly fields: readonly UserField[];
  readonly limit: number;
  /** The keys of the neighbouring user: the one before the page, or after it if `backwards`. */
  readonly next: SortKeys | undefined;
  readonly backwards: boolean;
}

/** Users of a list, always in its order. */
export interface UserListPage {
  /** JSON objects separated by commas; UTF-8. */
  readonly json: Buffer;
  readonly count: number;
  /** The keys of the first and of the last user; undefined for a page without users. */
  readonly first: SortKeys | undefined;
  readonly last: SortKeys | undefined;
  /** Whether more users follow in the direction of reading. */
  readonly more: boolean;
  /** The state of all users that the page shows; undefined for a page without users. */
  readonly state: string | undefined;
}

/** A page would have to examine more users than it may. */
export class TooManyMatchesError extends Error {
  override readonly name = 'TooManyMatchesError';
  /** Whether an index found the matches; otherwise every user would be examined. */
  readonly isIndexed: boolean;

  constructor(isIndexed: boolean) {
    super('Too many users match');
    this.isIndexed = isIndexed;
  }
}

/**
 * Lists of a database's users. All methods fail with StoreUnavailableError while the database cannot answer.
 */
export interface UserLists {
  readonly search: SearchLevel;
  /** Fails with TooManyMatchesError. */
  page(request: UserPageRequest): MaybePromise<UserListPage>;
  /** The number of matching users; a long count yields to other work. */
  count(filters: readonly UserFilter[]): Promise<number>;
  /** The key of the database that signs cursors. */
  cursorKey(): MaybePromise<Uint8Array>;
}

/** The default order of a list: the one in which an index returns the matches. */
export function defaultOrder(filters: readonly UserFilter[]): readonly OrderField[] {
  const byId = { field: 'id', descending: false } as const;
  const [only, ...others] = filters;
  if (only === undefined || others.length > 0) return [byId];
  return only.match === 'prefix' ? [{ field: only.field, descending: false }, byId] : [byId];
}

/** The start of a page. */
interface CursorPosition {
  /** The keys of the neighbouring user. */
  readonly next: SortKeys;
  /** Whether the page ends before that user. */
  readonly backwards: boolean;
}

/** Length of a signature, in bytes. */
const SIGNATURE = 16;

/** What tells a list from others: its filters and its order. */
function listOf({ filters, order }: UserSelection): string {
  return JSON.stringify([filters, order]);
}

/**
 * Writes a cursor: the position, and a signature with the key of the database that also covers the list, so
 * that a cursor is valid for one list only.
 */
export function writeCursor(key: Uint8Array, list: string, position: CursorPosition): string {
  const payload = Buffer.from(JSON.stringify([Number(position.backwards), ...position.next]));
  return Buffer.concat([sign(key, list, payload), payload]).toString('base64url');
}

/** Reads a cursor that `writeCursor` made for the same list. Throws HttpProblem for any other text. */
function readCursor(key: Uint8Array, list: string, cursor: string): CursorPosition {
  const bytes = Buffer.from(cursor, 'base64url');
  const payload = bytes.subarray(SIGNATURE);
  const isOurs =
    bytes.length > SIGNATURE &&
    bytes.toString('base64url') === cursor &&
    timingSafeEqual(bytes.subarray(0, SIGNATURE), sign(key, list, payload));
  if (!isOurs) {
    throw new HttpProblem(
      400,
      'INVALID_CURSOR',
      '"cursor" must come from a link to another page of the same list; start again without one',
    );
  }
  const [backwards, ...next] = JSON.parse(payload.toString()) as [number, ...SortKeys];
  return { next, backwards: backwards === 1 };
}

function sign(key: Uint8Array, list: string, payload: Uint8Array): Buffer {
  return createHmac('sha256', key).update(`${list}\n`).update(payload).digest().subarray(0, SIGNATURE);
}

/** Maximum number of values of a filter. */
const MAX_VALUES = 100;
/** Maximum length of a filter, more than any name or email, in characters. */
const MAX_TEXT = 500;

/** The filters of a list. A repeated filter matches any of its values. */
export const FILTERS = [
  'id',
  'name',
  'name:prefix',
  'name:contains',
  'email',
  'email:prefix',
  'email:contains',
  'q',
] as const;

/** Reads a filter. Throws HttpProblem. */
function readFilter(name: string, values: readonly string[]): UserFilter {
  if (values.length > MAX_VALUES) throw invalidParameter(name, `at most ${MAX_VALUES} values`);
  if (name === 'id') return { field: 'id', match: 'exact', values: values.map(idOf) };
  for (const value of values) {
    if (value === '' || value.length > MAX_TEXT || value.includes('\0') || !value.isWellFormed()) {
      throw invalidParameter(name, `a text of 1 to ${MAX_TEXT} characters`);
    }
  }
  const [field, match = 'exact'] = name.split(':') as [TextField | 'q', 'prefix' | 'contains' | undefined];
  if (match === 'exact' && field !== 'q') return { field, match, values };
  const [text = '', ...more] = values;
  if (more.length > 0) throw invalidParameter(name, 'one value');
  if (field === 'q') return { field: 'any', match: 'contains', text };
  return match === 'prefix' ? { field, match, text } : { field, match: 'contains', text };
}

function idOf(text: string): number {
  const id = readUserId(text);
  if (id === undefined) throw invalidParameter('id', 'an id, a whole number from 1 on');
  return id;
}

/** Default and maximum number of users per page. */
export const LIMIT = { default: 100, max: 1_000 } as const;

/** Parameters of a list that are not filters. */
const OTHERS = ['limit', 'cursor', 'sort', 'fields'] as const;
const KNOWN: readonly string[] = [...OTHERS, ...FILTERS];

/** The parsed parameters of a list. */
export interface ListParameters extends UserSelection {
  readonly limit: number;
  readonly fields: readonly UserField[];
  readonly cursor: string | undefined;
  /** The accepted parameters as they were given, without the cursor. */
  readonly given: readonly (readonly [name: string, value: string])[];
}

/**
 * Reads the parameters of a list; undefined if there are none. Throws an HttpProblem for an unknown parameter
 * or an invalid value, or ignores it if `isLenient`. An invalid cursor is never ignored, because the list
 * would start over.
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

/** Reads a set of fields; returns them in the order of a user's JSON. */
export function readFields(text: string): readonly UserField[] {
  const named = text.split(',');
  const unknown = named.some((name) => !USER_FIELDS.includes(name as UserField));
  if (unknown)
    throw invalidParameter('fields', `fields of a user (${USER_FIELDS.join(', ')}) with commas between`);
  return USER_FIELDS.filter((field) => named.includes(field));
}

/** A user's JSON, reduced to some of its fields. */
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

/** The refusal of a parameter's value; `expected` describes valid values. */
function invalidParameter(name: string, expected: string): HttpProblem {
  return new HttpProblem(400, 'INVALID_PARAMETER', `"${name}" takes ${expected}`);
}

/**
 * Reads an order such as `name,-id`, where `-` means descending. Adds the id as the last field, in the
 * direction of the field before it.
 */
function readSort(text: string): readonly OrderField[] {
  const order: OrderField[] = [];
  for (const name of text.split(',')) {
    const descending = name.startsWith('-');
    const field = (descending ? name.slice(1) : name) as UserField;
    if (!USER_FIELDS.includes(field) || order.some((each) => each.field === field)) {
      throw invalidParameter(
        'sort',
        `each of ${USER_FIELDS.join(', ')} at most once, with commas between and "-" for descending`,
      );
    }
    order.push({ field, descending });
  }
  // Ids are unique, so fields after the id do not affect the order.
  const id = order.findIndex(({ field }) => field === 'id');
  if (id !== -1) return order.slice(0, id + 1);
  return [...order, { field: 'id', descending: order.at(-1)?.descending ?? false }];
}

/** A page of a list, with the cursors of its neighbours. */
export interface UserPageAround extends UserListPage {
  /** Whether it was requested without a cursor. */
  readonly isFirst: boolean;
  /** The cursor of the next page, if there is one. */
  readonly next: string | undefined;
  /** The cursor of the previous page, if there is one. */
  readonly prev: string | undefined;
}

/** Reads the requested page. Fails with HttpProblem. */
export function readUserPage(lists: UserLists, asked: ListParameters): MaybePromise<UserPageAround> {
  return whenReady(lists.cursorKey(), (key) => {
    const at = asked.cursor === undefined ? undefined : readCursor(key, listOf(asked), asked.cursor);
    const page = explained(asked, () =>
      lists.page({ ...asked, next: at?.next, backwards: at?.backwards ?? false }),
    );
    return whenReady(page, (found) => ({ ...found, ...around(key, listOf(asked), at, found) }));
  });
}

/** The number of users that match the filters. Fails with HttpProblem. */
export function countUsers(lists: UserLists, asked: ListParameters): MaybePromise<number> {
  return explained(asked, () => lists.count(asked.filters));
}

/** The cursors around a page of a list that began at a position. */
function around(
  key: Uint8Array,
  list: string,
  at: CursorPosition | undefined,
  { first, last, more }: Pick<UserListPage, 'first' | 'last' | 'more'>,
): Pick<UserPageAround, 'isFirst' | 'next' | 'prev'> {
  const backwards = at?.backwards ?? false;
  const cursor = (position: CursorPosition) => writeCursor(key, list, position);
  return {
    isFirst: at === undefined,
    next: last !== undefined && (backwards || more) ? cursor({ next: last, backwards: false }) : undefined,
    prev:
      first !== undefined && at !== undefined && (!backwards || more)
        ? cursor({ next: first, backwards: true })
        : undefined,
  };
}

/** Turns a TooManyMatchesError into a refusal that says what to do. */
function explained<T>(asked: ListParameters, read: () => MaybePromise<T>): MaybePromise<T> {
  const refuse = (error: unknown): never => {
    if (!(error instanceof TooManyMatchesError)) throw error;
    throw error.isIndexed
      ? new HttpProblem(
          400,
          'TOO_MANY_MATCHES',
          'More than 10,000 users match the best of the filters; add a narrower one, or leave out the others and "sort"',
        )
      : new HttpProblem(
          400,
          'SEARCH_OFF',
          `There are more than 10,000 users, and they are not indexed for ${namesOf(asked)}; the operator can set REST_SEARCH`,
        );
  };
  try {
    const found = read();
    return found instanceof Promise ? found.catch(refuse) : found;
  } catch (error) {
    return refuse(error);
  }
}

/** The names of the parameters that filter or sort. */
function namesOf({ given }: ListParameters): string {
  const names = new Set(given.map(([name]) => name).filter((name) => name !== 'limit' && name !== 'fields'));
  return [...names].map((name) => `"${name}"`).join(' and ');
}

/** Formats of exports, with a line per user: a JSON object, or CSV with CRLF and all texts quoted. */
export type ExportFormat = 'ndjson' | 'csv';

/** Formats of users; in `json` a comma precedes each object. */
export type UserFormat = ExportFormat | 'json';

/** Maximum size of a page of users, in bytes; its last user may exceed it. */
export const PAGE_BYTES = 64 * 1024;

/** Consecutive users in a format. */
export interface UserPage {
  /** UTF-8; empty without users. Callers may share a page and must not write to it. */
  readonly bytes: Buffer;
  /** Number of users. */
  readonly count: number;
  /** The id of the last user; the start of the page if it has no users. */
  readonly lastId: number;
  /** Whether there may be more users after it. */
  readonly more: boolean;
  /** The state of all users that the page shows. */
  readonly state: string;
}

/** The line before exported users. */
export function exportHead(format: ExportFormat): string {
  return format === 'csv' ? 'id,name,email\r\n' : '';
}

/** The range of ids to read: `after` < id <= `upTo`. */
interface UserRange {
  readonly after: number;
  readonly upTo: number;
}

/** Reads the pages of a range in id order, each after the previous one was taken. */
export async function* userPages(
  users: Pick<DatabaseUserStore, 'page'>,
  format: UserFormat,
  { after, upTo }: UserRange,
): AsyncGenerator<UserPage, void> {
  for (let last = after; last < upTo; ) {
    const page = await users.page(format, last, upTo);
    if (page.count > 0) yield page;
    if (!page.more) return;
    last = page.lastId;
  }
}

/** Estimates how many users, or events of users, fill a page, from the size of those read last. */
export class PageRows {
  readonly #max: number;
  /** Average size of a user, in bytes. */
  #size = 64;

  /** `max`: maximum number of users per read. */
  constructor(max: number) {
    this.#max = max;
  }

  /** The number of users that fill a page that has `bytes` already. */
  rowsFor(bytes: number): number {
    return Math.min(this.#max, Math.ceil((PAGE_BYTES - bytes) / this.#size));
  }

  /** Records the size of a read. */
  read(bytes: number, rows: number): void {
    if (rows > 0) this.#size = Math.max(1, bytes / rows);
  }
}
