import type { LocalUserFeed } from './events.ts';
import { lengthProblem, type NewUser, type User, UserRefusedError, type UserStore } from './user.ts';

/** Users in memory, initially the two of the contract (CONTRACT.md#graphql-user). */
export class MemoryUserStore implements UserStore {
  readonly #feed: LocalUserFeed;
  readonly #maxUsers: number;
  readonly #users: User[] = [
    { id: '1', name: 'Ada Lovelace', email: 'ada@example.com' },
    { id: '2', name: 'Alan Turing', email: 'alan@example.com' },
  ];

  constructor(feed: LocalUserFeed, maxUsers: number) {
    this.#feed = feed;
    this.#maxUsers = maxUsers;
  }

  all(): readonly User[] {
    return this.#users;
  }

  /**
   * CONTRACT.md#graphql-operations: string equality, so '01' matches no id. The user with the id '1' is the
   * first.
   */
  byId(id: string): User | undefined {
    const user = this.#users[Number(id) - 1];
    return user?.id === id ? user : undefined;
  }

  /**
   * Accepts any texts, even empty ones: CONTRACT.md#graphql-operations appends each user and requires only
   * strings. Sizes are left open (CONTRACT.md#limits), memory is bounded and nothing removes users, so a long
   * text and a full store are refused with UserRefusedError.
   */
  add({ name, email }: NewUser): User {
    const problem = lengthProblem({ name, email });
    if (problem !== undefined) throw new UserRefusedError('INVALID_USER', `The user is refused: ${problem}`);
    if (this.#users.length >= this.#maxUsers) {
      throw new UserRefusedError(
        'COLLECTION_FULL',
        `There are ${this.#maxUsers} users already, which is the maximum`,
      );
    }
    // CONTRACT.md#graphql-user: the id is the decimal string of (number of users + 1)
    const user = { id: String(this.#users.length + 1), name, email };
    this.#users.push(user);
    this.#feed.publish(user);
    return user;
  }
}
