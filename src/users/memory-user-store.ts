import type { LocalUserFeed } from './local-user-feed.ts';
import { lengthProblem } from './new-user.ts';
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

  /**
   * Any text makes a user, the empty one too: contract 4.1 appends each user, and 2.1 asks for strings alone. But sizes are
   * left open (contract 8), memory is bounded, and nothing removes users: a long text and a full store are refused with
   * UserRefusedError.
   */
  add({ name, email }: NewUser): User {
    const problem = lengthProblem({ name, email });
    if (problem !== undefined) throw new UserRefusedError('INVALID_USER', `The user is refused: ${problem}`);
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
