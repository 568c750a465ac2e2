import type { Reply } from '@portico/transport';
import { type MaybePromise, whenReady } from '../core/maybe-promise.ts';
import {
  countUsers,
  type ListParameters,
  readUserPage,
  type UserLists,
  type UserPageAround,
} from '../relations/lists.ts';
import { exportHead, type UserFormat, type UserPage, userPages } from '../relations/pages.ts';
import type { DatabaseUserStore } from '../relations/user-stores.ts';
import { data, json } from './rest-errors.ts';
import { listValidators, validatorHeaders } from './validators.ts';

/** All users in a format. */
interface UserList {
  readonly body: Reply['body'];
  /** The state of all users when the list began, from which validators are made. */
  readonly state: string;
}

const [LIST_HEAD = '', LIST_TAIL = ''] = data('[|]').split('|');

/**
 * Lists all users in id order (CONTRACT.md#rest-routes). A list that fits one page is sent whole. A longer
 * one is sent in pieces, each read after the client has taken the previous one, so memory use does not grow
 * with the number of users. Each piece shows the users as of its read; users created after the start of a
 * long list are not included.
 */
export function userLister(users: DatabaseUserStore, format: UserFormat): () => MaybePromise<UserList> {
  const frame = {
    head: Buffer.from(format === 'json' ? LIST_HEAD : exportHead(format)),
    tail: Buffer.from(format === 'json' ? LIST_TAIL : ''),
    /** In JSON a page begins with a comma, which the first one of a list skips. */
    skipped: format === 'json' ? 1 : 0,
  };
  /**
   * The last list that fitted one page; as long as no user changes, the store returns the same page object.
   */
  let last: { readonly page: UserPage; readonly list: UserList } | undefined;

  async function* pieces(first: UserPage): AsyncGenerator<Buffer> {
    const range = { after: first.lastId, upTo: await users.lastId() };
    yield Buffer.concat([frame.head, first.bytes.subarray(frame.skipped)]);
    for await (const { bytes, more } of userPages(users, format, range)) {
      if (more) yield bytes;
      else return yield Buffer.concat([bytes, frame.tail]);
    }
    yield frame.tail;
  }

  return () =>
    whenReady(users.page(format, 0, Number.MAX_SAFE_INTEGER), (page) => {
      const { bytes, more, state } = page;
      if (more) return { body: pieces(page), state };
      if (page !== last?.page) {
        const body = Buffer.concat([frame.head, bytes.subarray(frame.skipped), frame.tail]);
        last = { page, list: { body, state } };
      }
      return last.list;
    });
}

/** Options of the reply with a page. */
interface ListPageOptions {
  /** The path of the list as clients see it. */
  readonly path: string;
  /** Whether to count all matches. */
  readonly counts: boolean;
}

const [PAGE_HEAD, PAGE_TAIL] = data('[|]')
  .split('|')
  .map((part) => Buffer.from(part)) as [Buffer, Buffer];

/** Answers with the requested page of a list. Throws HttpProblem. */
export function listPage(
  lists: UserLists,
  asked: ListParameters,
  { path, counts }: ListPageOptions,
): MaybePromise<Reply> {
  return whenReady(readUserPage(lists, asked), (page) => {
    const link = linksOf(asked, page, path);
    const headers = {
      ...(link === '' ? {} : { link }),
      ...(page.state === undefined ? {} : validatorHeaders(listValidators(page.state))),
    };
    const body = Buffer.concat([PAGE_HEAD, page.json, PAGE_TAIL]);
    if (!counts) return json(body, 200, headers);
    return whenReady(countUsers(lists, asked), (total) =>
      json(body, 200, { ...headers, ...totalHeaders(total) }),
    );
  });
}

/** The header fields with the number of all matches. */
export function totalHeaders(total: number): Readonly<Record<string, string>> {
  return { 'x-total-count': String(total), 'preference-applied': 'count=exact' };
}

/** Links to the next, previous and first page (RFC 8288). */
function linksOf({ given }: ListParameters, { isFirst, next, prev }: UserPageAround, path: string): string {
  const link = (rel: string, cursor?: string) => {
    const position = cursor === undefined ? [] : [['cursor', cursor] as const];
    const query = new URLSearchParams([...given, ...position] as [string, string][]).toString();
    return `<${path}${query === '' ? '' : `?${query}`}>; rel="${rel}"`;
  };
  return [
    ...(next === undefined ? [] : [link('next', next)]),
    ...(prev === undefined ? [] : [link('prev', prev)]),
    ...(isFirst ? [] : [link('first')]),
  ].join(', ');
}
