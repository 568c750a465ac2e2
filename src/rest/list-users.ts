import { type MaybePromise, whenReady } from '../core/maybe-promise.ts';
import type { Reply } from '../http/endpoint.ts';
import type { DatabaseUserStore } from '../users/database-user-store.ts';
import { exportHead, type UserFormat, type UserPage, userPages } from '../users/user-pages.ts';
import { data } from './envelope.ts';

/** All users in a format. */
export interface UserList {
  readonly body: Reply['body'];
  /** What named the state of all users when the list began. */
  readonly state: string;
}

const [HEAD = '', TAIL = ''] = data('[|]').split('|');

/**
 * Lists all users in id order (contract 4.2). A list that fits one page is sent whole; a longer one in pieces, each of
 * which is read when the client has taken the one before, so memory stays flat however many users there are. Each piece
 * shows the users as they are when it is read; users created after the start of a long list are not in it.
 */
export function userLister(users: DatabaseUserStore, format: UserFormat): () => MaybePromise<UserList> {
  const frame = {
    head: Buffer.from(format === 'json' ? HEAD : exportHead(format)),
    tail: Buffer.from(format === 'json' ? TAIL : ''),
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
