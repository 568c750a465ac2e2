import { DatabaseOpenError } from '../core/errors.ts';
import { oneLine } from '../core/text.ts';
import type { OrderField, TextField, UserField, UserFilter, UserSelection } from '../relations/lists.ts';
import type { SearchLevel } from '../relations/user.ts';

/** The rows of a page as they leave the thread that reads them. */
export interface PackedRows {
  /** The users as JSON objects with commas between, in the order of reading; UTF-8. */
  readonly json: Uint8Array;
  readonly count: number;
  /** Whether there are more rows than the page takes. */
  readonly more: boolean;
  /** Id, name and email of the first and the last user, in the order of reading. */
  readonly first: readonly unknown[] | undefined;
  readonly last: readonly unknown[] | undefined;
  /** What names the state of all users; undefined without users. */
  readonly state: string | undefined;
}

/** Packs the rows of a page: id, name, email, JSON, the state of all. `backwards` puts the last one first. */
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

/**
 * How the users of a selection are found. Either one index gives them in their order, so that a page costs the same
 * wherever it is; or the best of the filters finds at most `MAX_MATCHES` users, which are then looked at one by one.
 */
export type ListPlan =
  | { readonly kind: 'walk'; readonly filter: UserFilter | undefined; readonly order: readonly OrderField[] }
  /** Without a driver all users are looked at. */
  | {
      readonly kind: 'narrow';
      readonly driver: UserFilter | undefined;
      readonly others: readonly UserFilter[];
    };

/** Maximum number of users that are sorted or filtered for one page: a few milliseconds of work. */
export const MAX_MATCHES = 10_000;
/** The length of the parts of texts that are indexed, in characters. */
const PART = 3;

/** Plans a selection for users that are indexed for `search`. */
export function planList({ filters, order }: UserSelection, search: SearchLevel): ListPlan {
  const [only] = filters;
  const walked = filters.length > 1 ? undefined : walkedOrder(only, order, search);
  if (walked !== undefined) return { kind: 'walk', filter: only, order: walked };
  const [driver] = filters
    .filter((filter) => isIndexed(filter, search))
    .toSorted((a, b) => rank(a) - rank(b));
  return { kind: 'narrow', driver, others: filters.filter((filter) => filter !== driver) };
}

/** The order in which an index gives the matches of a filter, if it is the one that is asked for. */
function walkedOrder(
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
  // All matches are equal in the field.
  const rest = order.filter((each) => each.field !== field);
  return rest[0]?.field === 'id' ? rest : undefined;
}

function isIndexed(filter: UserFilter, search: SearchLevel): boolean {
  if (filter.field === 'id') return true;
  if (filter.match === 'contains') return search === 'text' && [...filter.text].length >= PART;
  return search !== 'none';
}

/** The filters that find the fewest users come first. */
function rank(filter: UserFilter): number {
  const { field, match } = filter;
  if (field === 'id') return 0;
  if (match === 'exact') return field === 'email' ? 1 : 2;
  if (match === 'contains') return 3;
  return field === 'email' ? 4 : 5;
}

/** A value that is bound to a statement. */
export type Bound = string | number | readonly (string | number)[];

/** Adds a value to a statement; returns what stands for it in the text. */
export type Bind = (value: Bound) => string;

/** How an engine writes the parts of a query for users. */
export interface ListDialect {
  /** What stands for the nth value, from 1 on. */
  placeholder(nth: number, value: Bound): string;
  /** A field as it is compared, sorted and indexed: texts without regard to the case of A to Z. */
  key(field: UserField): string;
  /** Whether a key is one of several values, which are folded. */
  isOneOf(key: string, values: readonly (string | number)[], bind: Bind): string;
  /** Whether one of the fields of a row contains a folded text. */
  contains(fields: readonly TextField[], text: string, bind: Bind): string;
  /**
   * The same, found by an index; the text has three characters or more. Where the index is a table of its own, `bounds`
   * gives further conditions on its `id`, its order and its limit.
   */
  containing(fields: readonly TextField[], text: string, bind: Bind, bounds: () => string): string;
  /** What names the state of all users (see DatabaseUserStore). */
  readonly state: string;
  /** A JSON object with these fields of the row. */
  json(fields: readonly UserField[]): string;
}

/** What the users are indexed for besides their ids. Whoever opens a database without it leaves the indexes as they are. */
export interface UserIndexOptions {
  /** What lists can find users by. */
  readonly search: SearchLevel;
  /** Whether no two users may have the same email; default false. */
  readonly uniqueEmail?: boolean;
}

/** The names of the indexes, which both engines have. */
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

/** Maximum number of emails that a refusal to open names. */
export const MAX_DUPLICATES = 5;

/** The refusal to make emails unique that are not: each email with the ids of its users. */
export function duplicateEmails(rows: readonly (readonly [email: string, ids: string])[]): DatabaseOpenError {
  const named = rows
    .slice(0, MAX_DUPLICATES)
    .map(([email, ids]) => `${oneLine(email)} (users ${oneLine(ids)})`);
  const more = rows.length > MAX_DUPLICATES ? ', and more' : '';
  return new DatabaseOpenError(
    `users share an email: ${named.join(', ')}${more}. Change or delete all but one of each, or turn users.uniqueEmail (USERS_UNIQUE_EMAIL) off.`,
  );
}
