import type { LocalUserFeed } from './local-user-feed.ts';
import type { NewUser, User } from './user.ts';
import { UserRefusedError, type UserStore } from './user-store.ts';

/** Users in memory, at first the two of the contract (contract 2.1). */
export class MemoryUserStore implements UserStore {
  readonly #feed: LocalUserFeed;
  readonly #maxUsers: number;
  readonly #users: User[] = [
    { id: '1', name: 'Ada Lovelace', email: 'ada@example.com' },
    { id: '2', name: 'Alan Turing', email: 'alan@example.com' },
  ];
  readonly #byId = new Map(this.#users.map((user) => [user.id, user]));

  constructor(feed: LocalUserFeed, maxUsers: number) {
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

  /** Throws UserRefusedError: memory is bounded, and nothing removes users. */
  add({ name, email }: NewUser): User {
    if (this.#users.length >= this.#maxUsers) {
      throw new UserRefusedError(
        'COLLECTION_FULL',
        `There are ${this.#maxUsers} users already; no more are taken`,
      );
    }
    // contract 2.1: the id is the decimal string of (number of users + 1)
    const user = { id: String(this.#users.length + 1), name, email };
    this.#users.push(user);
    this.#byId.set(user.id, user);
    this.#feed.publish(user);
    return user;
  }
}
