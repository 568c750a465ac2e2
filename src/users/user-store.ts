import type { MaybePromise } from '../core/maybe-promise.ts';
import type { NewUser, User } from './user.ts';

/**
 * What keeps users: memory, SQLite or PostgreSQL. The GraphQL door works on any of them (contract 2.1 and 4.1).
 * Every method fails with StoreUnavailableError while a database cannot answer.
 */
export interface UserStore {
  /** All users, in the order in which they were created. */
  all(): MaybePromise<readonly User[]>;
  /** The user whose id equals `id` as a string; undefined when there is none. */
  byId(id: string): MaybePromise<User | undefined>;
  /** Stores a user and returns it with its new id. Fails with an ExpectedError for one that the store does not take. */
  add(user: NewUser): MaybePromise<User>;
}
