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
  /** What named the state of all users when the list began. */
  readonly state: string;
}

const [LIST_HEAD = '', LIST_TAIL = ''] = data('[|]').split('|');

/**
 * Lists all users in id order (CONTRACT.md#rest-routes). A list that fits one page is sent whole; a longer one in pieces, each of
 * which is read when the client has taken the one before, so memory stays flat however many users there are. Each piece
 * shows the users as they are when it is read; users created after the start of a long list are not in it.
 */
export function userLister(users: DatabaseUserStore, format: UserFormat): () => MaybePromise<UserList> {
  const frame = {
    head: Buffer.from(format === 'json' ? LIST_HEAD : exportHead(format)),
    tail: Buffer.from(format === 'json' ? LIST_TAIL : ''),
    /** The first user of a list has no comma in front of it. */
    skipped: format === 'json' ? 1 : 0,
  };
  /** The last list that fitted one page. As long as nobody changes users, the store gives the same page. */
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

/** How a page is answered. */
interface ListPageOptions {
  /** The path of the list as clients see it. */
  readonly path: string;
  /** Whether the number of all matches is asked for. */
  readonly counts: boolean;
}

const [PAGE_HEAD, PAGE_TAIL] = data('[|]')
  .split('|')
  .map((part) => Buffer.from(part)) as [Buffer, Buffer];

/** Answers with the page of a list that the parameters ask for. Throws HttpProblem. */
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

/** The header fields that tell the number of all matches. */
export function totalHeaders(total: number): Readonly<Record<string, string>> {
  return { 'x-total-count': String(total), 'preference-applied': 'count=exact' };
}

/** The links to the pages around (RFC 8288). */
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
