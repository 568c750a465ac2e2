import type { NewUser, User } from './user.ts';
import type { UserCollection } from './user-collection.ts';
import type { UserFeed } from './user-feed.ts';

/** The collection takes no more users. */
export class CollectionFullError extends Error {
  override readonly name = 'CollectionFullError';
  readonly code = 'COLLECTION_FULL';
}

/** The in-memory collection of contract 2.1: it holds two users at the start. */
export class MemoryUserCollection implements UserCollection {
  readonly #feed: UserFeed;
  readonly #maxUsers: number;
  readonly #users: User[] = [
    { id: '1', name: 'Ada Lovelace', email: 'ada@example.com' },
    { id: '2', name: 'Alan Turing', email: 'alan@example.com' },
  ];
  readonly #byId = new Map(this.#users.map((user) => [user.id, user]));

  constructor(feed: UserFeed, maxUsers: number) {
    this.#feed = feed;
    this.#maxUsers = maxUsers;
  }

  all(): readonly User[] {
    return this.#users;
  }

  // contract 4.1: string equality
  byId(id: string): User | undefined {
    return this.#byId.get(id);
  }

  /** Throws CollectionFullError: memory has an end, and nothing removes users. */
  add({ name, email }: NewUser): User {
    if (this.#users.length >= this.#maxUsers) {
      throw new CollectionFullError(`There are ${this.#maxUsers} users already; no more are taken`);
    }
    // contract 2.1: the id is the decimal string of (number of users + 1)
    const user = { id: String(this.#users.length + 1), name, email };
    this.#users.push(user);
    this.#byId.set(user.id, user);
    this.#feed.publish(user);
    return user;
  }
}
