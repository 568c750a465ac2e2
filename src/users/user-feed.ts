import type { MaybePromise } from '../core/maybe-promise.ts';
import type { User } from './user.ts';

/** Notifies subscribers of users that are created. */
export interface UserFeed {
  /**
   * Users from now on, until the iterator is returned: each whose creation is acknowledged after this resolves, once.
   * Fails with StoreUnavailableError while the database cannot answer; a subscriber that does not keep up gets
   * SlowSubscriberError.
   */
  subscribe(): MaybePromise<AsyncIterableIterator<User>>;
}
