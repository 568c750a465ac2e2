import type { User } from './user.ts';
import type { UserEventType } from './user-event.ts';
import type { UserFeed } from './user-feed.ts';

/** Maximum number of users that wait for a subscriber; then it is dropped. */
const MAX_WAITING = 1_000;

/** A subscriber did not keep up; what it missed can be read from the store. */
export class SlowSubscriberError extends Error {
  override readonly name = 'SlowSubscriberError';
  readonly code = 'SLOW_SUBSCRIBER';
}

/**
 * The feed of users in memory, which are created and never changed: publishes each user to the current subscribers and
 * keeps none for later ones.
 */
export class LocalUserFeed implements UserFeed {
  readonly #subscribers = new Set<(user: User) => void>();

  /** How many subscribers there are now. */
  get subscribers(): number {
    return this.#subscribers.size;
  }

  publish(user: User): void {
    for (const notify of this.#subscribers) notify(user);
  }

  /**
   * Users from now on, until the iterator is returned. One that falls `MAX_WAITING` users behind
   * ends with SlowSubscriberError.
   */
  subscribe(type: UserEventType = 'created'): AsyncIterableIterator<User> {
    const waiting: User[] = [];
    let next: PromiseWithResolvers<IteratorResult<User>> | undefined;
    let ended = false;
    let slow = false;
    const end = (): void => {
      ended = true;
      this.#subscribers.delete(notify);
    };
    const notify = (user: User): void => {
      if (type !== 'created') return;
      if (next !== undefined) {
        next.resolve({ value: user, done: false });
        next = undefined;
      } else if (waiting.length < MAX_WAITING) waiting.push(user);
      else {
        slow = true;
        waiting.length = 0;
        end();
      }
    };
    this.#subscribers.add(notify);
    return {
      next() {
        const user = waiting.shift();
        if (user !== undefined) return Promise.resolve({ value: user, done: false });
        if (slow) {
          slow = false;
          return Promise.reject(new SlowSubscriberError('The subscriber did not keep up'));
        }
        if (ended) return Promise.resolve({ value: undefined, done: true });
        next ??= Promise.withResolvers<IteratorResult<User>>();
        return next.promise;
      },
      return() {
        end();
        waiting.length = 0;
        next?.resolve({ value: undefined, done: true });
        next = undefined;
        return Promise.resolve({ value: undefined, done: true });
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }
}
