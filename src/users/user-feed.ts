import type { MaybePromise } from '../core/maybe-promise.ts';
import type { User } from './user.ts';
import type { UserEventType } from './user-event.ts';

/** Notifies subscribers of what is done to users. */
export interface UserFeed {
  /**
   * Users that are created, updated or deleted from now on, until the iterator is returned: each whose change is
   * acknowledged after this resolves, once. Fails with StoreUnavailableError while the database cannot answer; a
   * subscriber that does not keep up gets SlowSubscriberError or EventsGoneError.
   */
  subscribe(type: UserEventType): MaybePromise<AsyncIterableIterator<User>>;
}
