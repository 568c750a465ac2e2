import { type MaybePromise, whenReady } from '../../core/maybe-promise.ts';
import { HttpProblem } from '../../http/problem.ts';
import { TooManyMatchesError, type UserListPage, type UserLists } from '../user-list.ts';
import { type CursorPosition, readCursor, writeCursor } from './cursor.ts';
import type { ListParameters } from './parameters.ts';

/** A page of a list, and where those around it begin. */
export interface UserPageAround extends UserListPage {
  /** Whether it is the page without a cursor. */
  readonly isFirst: boolean;
  /** The cursor of the page behind it, if there is one. */
  readonly next: string | undefined;
  /** The cursor of the page before it, if there is one. */
  readonly prev: string | undefined;
}

/** Reads the page that the parameters ask for. Fails with HttpProblem. */
export function readUserPage(lists: UserLists, asked: ListParameters): MaybePromise<UserPageAround> {
  return whenReady(lists.cursorKey(), (key) => {
    const at = asked.cursor === undefined ? undefined : readCursor(key, asked, asked.cursor);
    const page = explained(asked, () =>
      lists.page({ ...asked, next: at?.next, backwards: at?.backwards ?? false }),
    );
    return whenReady(page, (found) => ({ ...found, ...around(asked, at, found, key) }));
  });
}

/** The number of users that the filters match. Fails with HttpProblem. */
export function countUsers(lists: UserLists, asked: ListParameters): MaybePromise<number> {
  return explained(asked, () => lists.count(asked.filters));
}

function around(
  asked: ListParameters,
  at: CursorPosition | undefined,
  { first, last, more }: UserListPage,
  key: Uint8Array,
): Pick<UserPageAround, 'isFirst' | 'next' | 'prev'> {
  const backwards = at?.backwards ?? false;
  const cursor = (position: CursorPosition) => writeCursor(key, asked, position);
  return {
    isFirst: at === undefined,
    next: last !== undefined && (backwards || more) ? cursor({ next: last, backwards: false }) : undefined,
    prev:
      first !== undefined && at !== undefined && (!backwards || more)
        ? cursor({ next: first, backwards: true })
        : undefined,
  };
}

/** Turns the refusal of a selection that costs too much into one that says what to do. */
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

/** The parameters that filter or sort. */
function namesOf({ given }: ListParameters): string {
  const names = new Set(given.map(([name]) => name).filter((name) => name !== 'limit' && name !== 'fields'));
  return [...names].map((name) => `"${name}"`).join(' and ');
}
