import { type MaybePromise, whenReady } from '../../core/maybe-promise.ts';
import type { Reply } from '../../http/endpoint.ts';
import { HttpProblem } from '../../http/problem.ts';
import { TooManyMatchesError, type UserListPage, type UserLists } from '../../users/user-list.ts';
import { data, json } from '../envelope.ts';
import { listValidators, validatorHeaders } from '../validators.ts';
import { type CursorPosition, readCursor, writeCursor } from './cursor.ts';
import type { ListParameters } from './parameters.ts';

/** How a page is answered. */
export interface ListPageOptions {
  /** The path of the list as clients see it. */
  readonly path: string;
  /** Whether the number of all matches is asked for. */
  readonly counts: boolean;
}

/** Answers with the page of a list that the parameters ask for. Throws HttpProblem. */
export function listPage(
  lists: UserLists,
  asked: ListParameters,
  { path, counts }: ListPageOptions,
): MaybePromise<Reply> {
  return whenReady(lists.cursorKey(), (key) => {
    const at = asked.cursor === undefined ? undefined : readCursor(key, asked, asked.cursor);
    const page = shown(asked, () =>
      lists.page({ ...asked, next: at?.next, backwards: at?.backwards ?? false }),
    );
    return whenReady(page, (found) => {
      const link = linksOf(asked, at, found, path, key);
      const headers = {
        ...(link === '' ? {} : { link }),
        ...(found.state === undefined ? {} : validatorHeaders(listValidators(found.state))),
      };
      const body = data(`[${found.users.map((user) => user.json).join()}]`);
      if (!counts) return json(body, 200, headers);
      return whenReady(
        shown(asked, () => lists.count(asked.filters)),
        (total) => json(body, 200, { ...headers, ...totalHeaders(total) }),
      );
    });
  });
}

/** The header fields that tell the number of all matches. */
export function totalHeaders(total: number): Readonly<Record<string, string>> {
  return { 'x-total-count': String(total), 'preference-applied': 'count=exact' };
}

/** Turns the refusal of a selection that costs too much into one that says what to do. */
function shown<T>(asked: ListParameters, read: () => MaybePromise<T>): MaybePromise<T> {
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

/** The links to the pages around (RFC 8288). */
function linksOf(
  asked: ListParameters,
  at: CursorPosition | undefined,
  { users, more }: UserListPage,
  path: string,
  key: Uint8Array,
): string {
  const backwards = at?.backwards ?? false;
  const link = (rel: string, position?: CursorPosition) => {
    const cursor = position === undefined ? [] : [['cursor', writeCursor(key, asked, position)] as const];
    const query = new URLSearchParams([...asked.given, ...cursor] as [string, string][]).toString();
    return `<${path}${query === '' ? '' : `?${query}`}>; rel="${rel}"`;
  };
  const first = users[0]?.keys;
  const last = users.at(-1)?.keys;
  const links: string[] = [];
  if (last !== undefined && (backwards || more)) links.push(link('next', { next: last, backwards: false }));
  if (first !== undefined && at !== undefined && (!backwards || more)) {
    links.push(link('prev', { next: first, backwards: true }));
  }
  if (at !== undefined) links.push(link('first'));
  return links.join(', ');
}
