import type { MaybePromise } from '../core/maybe-promise.ts';
import type { NewUser, User } from './user.ts';

/** The collection of users behind the GraphQL door (contract 2.1 and 4.1). */
export interface UserCollection {
  /** All users, in the order in which they were created. */
  all(): MaybePromise<readonly User[]>;
  /** The user whose id equals `id` as a string; undefined when there is none. */
  byId(id: string): MaybePromise<User | undefined>;
  /** Appends a user and returns it with its new id. */
  add(user: NewUser): MaybePromise<User>;
}
