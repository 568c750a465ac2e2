import type { NewUser, User } from './user.ts';
import type { UserCollection } from './user-collection.ts';

/** The in-memory collection of contract 2.1: it holds two users at the start. */
export class MemoryUserCollection implements UserCollection {
  readonly #users: User[] = [
    { id: '1', name: 'Ada Lovelace', email: 'ada@example.com' },
    { id: '2', name: 'Alan Turing', email: 'alan@example.com' },
  ];
  readonly #byId = new Map(this.#users.map((user) => [user.id, user]));

  all(): readonly User[] {
    return this.#users;
  }

  // contract 4.1: string equality
  byId(id: string): User | undefined {
    return this.#byId.get(id);
  }

  // contract 2.1: the id is the decimal string of (number of users + 1)
  add({ name, email }: NewUser): User {
    const user = { id: String(this.#users.length + 1), name, email };
    this.#users.push(user);
    this.#byId.set(user.id, user);
    return user;
  }
}
