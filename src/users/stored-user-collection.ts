import { type MaybePromise, whenReady } from '../core/maybe-promise.ts';
import { readNewUser } from './new-user.ts';
import type { NewUser, User } from './user.ts';
import type { UserCollection } from './user-collection.ts';
import { readUserId } from './user-id.ts';
import type { UserStore } from './user-store.ts';

/** A user that the store does not take; the message may be shown. */
export class InvalidUserError extends Error {
  override readonly name = 'InvalidUserError';
  readonly code = 'INVALID_USER';
}

/** The users of the relational store as a collection: the same users as REST serves, their ids as strings. */
export class StoredUserCollection implements UserCollection {
  readonly #store: UserStore;

  constructor(store: UserStore) {
    this.#store = store;
  }

  all(): MaybePromise<readonly User[]> {
    return whenReady(this.#store.page(0, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER), ({ json }) =>
      (JSON.parse(`[${json}]`) as readonly StoredUser[]).map(toUser),
    );
  }

  byId(id: string): MaybePromise<User | undefined> {
    const number = readUserId(id);
    if (number === undefined) return undefined;
    return whenReady(this.#store.readJson(number), (json) =>
      json === undefined ? undefined : toUser(JSON.parse(json) as StoredUser),
    );
  }

  async add(newUser: NewUser): Promise<User> {
    const user = readNewUser(newUser);
    if (user === undefined) throw new InvalidUserError('A user needs a name and an email');
    return { id: String(await this.#store.create(user)), ...user };
  }
}

interface StoredUser extends NewUser {
  readonly id: number;
}

function toUser({ id, name, email }: StoredUser): User {
  return { id: String(id), name, email };
}
