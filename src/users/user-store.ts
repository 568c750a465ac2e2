import { ExpectedError } from '../core/expected-error.ts';
import type { MaybePromise } from '../core/maybe-promise.ts';
import type { NewUser, User } from './user.ts';

/**
 * A store of users: memory, SQLite or PostgreSQL. The GraphQL door works on any of them (contract 2.1 and 4.1).
 * Every method fails with StoreUnavailableError while a database cannot answer.
 */
export interface UserStore {
  /** All users, in the order in which they were created; a long list is read piece by piece. */
  all(): MaybePromise<Iterable<User> | AsyncIterable<User>>;
  /** The user whose id equals `id` as a string; undefined when there is none. */
  byId(id: string): MaybePromise<User | undefined>;
  /** Stores a user and returns it with its new id. Fails with UserRefusedError for an invalid user, or when it is full. */
  add(user: NewUser): MaybePromise<User>;
}

/** A store refused a user; the message is meant for the client: it names the field and says why. */
export class UserRefusedError extends ExpectedError {
  override readonly name = 'UserRefusedError';
  readonly code: 'COLLECTION_FULL' | 'EMAIL_TAKEN' | 'INVALID_USER';

  constructor(code: UserRefusedError['code'], message: string) {
    super(message);
    this.code = code;
  }
}

/** The refusal of an email that another user has, where emails are unique. */
export function emailTaken(): UserRefusedError {
  return new UserRefusedError('EMAIL_TAKEN', 'Another user has this email');
}
