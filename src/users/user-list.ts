import type { MaybePromise } from '../core/maybe-promise.ts';
import type { SearchLevel } from './search-level.ts';

/** The fields of a user, in the order in which JSON has them. */
export const USER_FIELDS = ['id', 'name', 'email'] as const;
export type UserField = (typeof USER_FIELDS)[number];
export type TextField = Exclude<UserField, 'id'>;

/** One field of an order. */
export interface OrderField {
  readonly field: UserField;
  readonly descending: boolean;
}

/** A condition on users; texts match without regard to the case of A to Z. */
export type UserFilter =
  /** The field has one of the values. */
  | { readonly field: 'id'; readonly match: 'exact'; readonly values: readonly number[] }
  | { readonly field: TextField; readonly match: 'exact'; readonly values: readonly string[] }
  | { readonly field: TextField; readonly match: 'prefix'; readonly text: string }
  /** `any`: one of the texts contains it. */
  | { readonly field: TextField | 'any'; readonly match: 'contains'; readonly text: string };

/** Which users a list has, in which order. */
export interface UserSelection {
  readonly filters: readonly UserFilter[];
  /** The last field is the id, so that no two users are equal. */
  readonly order: readonly OrderField[];
}

/** The values of a selection's order in one user, texts folded. */
export type SortKeys = readonly (string | number)[];

/** A page of a list. */
export interface UserPageRequest extends UserSelection {
  readonly fields: readonly UserField[];
  readonly limit: number;
  /** The keys of the user next to the page: the one before it, or the one behind it if `backwards`. */
  readonly next: SortKeys | undefined;
  readonly backwards: boolean;
}

/** Users of a list, always in its order. */
export interface UserListPage {
  /** JSON objects with commas between; UTF-8. */
  readonly json: Buffer;
  readonly count: number;
  /** The keys of the first and of the last user; undefined for a page without users. */
  readonly first: SortKeys | undefined;
  readonly last: SortKeys | undefined;
  /** Whether more users follow in the direction of reading. */
  readonly more: boolean;
  /** What names the state of all users, as the page shows them; undefined for a page without users. */
  readonly state: string | undefined;
}

/** More users would have to be looked at one by one than one page may cost. */
export class TooManyMatchesError extends Error {
  override readonly name = 'TooManyMatchesError';
  /** Whether an index found them; without one they are all the users. */
  readonly isIndexed: boolean;

  constructor(isIndexed: boolean) {
    super('Too many users match');
    this.isIndexed = isIndexed;
  }
}

/** The lists of a database's users. All methods fail with StoreUnavailableError while it cannot answer. */
export interface UserLists {
  readonly search: SearchLevel;
  /** Fails with TooManyMatchesError. */
  page(request: UserPageRequest): MaybePromise<UserListPage>;
  /** The number of users that match; a long count lets other work run in between. */
  count(filters: readonly UserFilter[]): Promise<number>;
  /** The key that signs cursors, of the database. */
  cursorKey(): MaybePromise<Uint8Array>;
}

/** A text as filters and orders compare it: A to Z as a to z, as every engine can without a locale. */
export function folded(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/** The order of a list that names none: that in which an index gives the matches. */
export function defaultOrder(filters: readonly UserFilter[]): readonly OrderField[] {
  const byId = { field: 'id', descending: false } as const;
  const [only, ...others] = filters;
  if (only === undefined || others.length > 0) return [byId];
  return only.match === 'prefix' ? [{ field: only.field, descending: false }, byId] : [byId];
}
