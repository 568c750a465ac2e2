import { Readable } from 'node:stream';
import { setImmediate as nextTick } from 'node:timers/promises';
import { type MaybePromise, whenReady } from '../core/maybe-promise.ts';
import type { DatabaseUserStore, UserPage } from '../users/database-user-store.ts';
import { data } from './envelope.ts';

/** Users per piece of the list: a few dozen kilobytes, made in a fraction of a millisecond. */
const PAGE = 500;

const [HEAD = '', TAIL = ''] = data('[|]').split('|');

/** The list of all users. */
export interface UserList {
  readonly body: string | Readable;
  /** What named the state of all users when the list began. */
  readonly state: string;
}

/**
 * GET /users (contract 4.2): all users in id order. A list that fits one page is sent whole;
 * a longer one is a stream that asks the store for the next page only when the client took the last one,
 * so memory stays flat however many users there are. Each piece shows the users as they are when it is read;
 * users created after the start of a long list are not in it.
 */
export function listUsers(users: DatabaseUserStore): MaybePromise<UserList> {
  return whenReady(users.page(0, Number.MAX_SAFE_INTEGER, PAGE), (first) => ({
    state: first.state,
    body:
      first.count < PAGE
        ? data(`[${first.json}]`)
        : Readable.from(pieces(users, first), { objectMode: false, highWaterMark: 1 }),
  }));
}

async function* pieces(users: DatabaseUserStore, first: UserPage): AsyncGenerator<string> {
  const upTo = await users.lastId();
  yield HEAD + first.json;
  let after = first.lastId;
  while (after < upTo) {
    // A fast reader takes each piece at once; other requests run in between.
    await nextTick();
    const page = await users.page(after, upTo, PAGE);
    if (page.count === 0) break;
    yield `,${page.json}`;
    after = page.lastId;
  }
  yield TAIL;
}
