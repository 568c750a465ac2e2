import { ExpectedError } from '../core/errors.ts';
import type { MaybePromise } from '../core/maybe-promise.ts';
import { PageRows } from './pages.ts';
import type { User } from './user.ts';
import { userOfJson } from './user-stores.ts';

/** What was done to a user. */
export type UserEventType = 'created' | 'updated' | 'deleted';

/** Names an event: its place in the order of commits, and the moment of the change in milliseconds since 1970. */
export interface EventPosition {
  readonly position: number;
  readonly at: number;
}

/** A change of a user. */
export interface UserEvent extends EventPosition {
  readonly type: UserEventType;
  /** The user after the change, or as it was deleted, as JSON. */
  readonly json: string;
}

/** The events that a database keeps, in the order of their commits. Reads fail with StoreUnavailableError. */
export interface UserEventLog {
  /** The newest event. */
  newest(): MaybePromise<EventPosition>;
  /** Up to `limit` events behind one that was read before; undefined when that one is not kept any more. */
  read(after: EventPosition, limit: number): MaybePromise<readonly UserEvent[] | undefined>;
  /**
   * Removes up to `limit` of the oldest events that are more than `maxEvents` or of a moment before `before`; the newest
   * one stays, and those that a relay has not come to which was moved since then. Resolves to whether there may be more.
   */
  prune(maxEvents: number, before: number, limit: number): Promise<boolean>;
}

/** The event that a reader has seen last is not kept any more, so others may be missing too. */
export class EventsGoneError extends ExpectedError {
  override readonly name = 'EventsGoneError';
  readonly code = 'EVENTS_GONE';

  constructor() {
    super('This event is not kept any more; read the list again, and follow the events from now on');
  }
}

/** Notifies subscribers of what is done to users. */
export interface UserFeed {
  /**
   * Users that are created, updated or deleted from now on, until the iterator is returned: each whose change is
   * acknowledged after this resolves, once. Fails with StoreUnavailableError while the database cannot answer; a
   * subscriber that does not keep up gets SlowSubscriberError or EventsGoneError.
   */
  subscribe(type: UserEventType): MaybePromise<AsyncIterableIterator<User>>;
}

/** Maximum number of events per read; fewer where they are large. */
const PAGE = 200;
/** Events that are kept in memory for all followers; one that is further behind reads the log. */
const MAX_RECENT = 1_000;
/** Time between two polls without a wake, in milliseconds. */
const INTERVAL = 1_000;

/**
 * Gives the events of a log to any number of followers. One poll serves those that keep up. It polls when it is woken, and
 * every second for what nobody told it; without followers it does not poll.
 */
export class UserEventFeed implements UserFeed, Disposable {
  readonly #log: UserEventLog;
  readonly #pause: number;
  readonly #rows = new PageRows(PAGE);
  readonly #followers = new Set<EventFollower>();
  /** The newest events, up to `#newest`, behind the position `#from`. */
  #recent: UserEvent[] = [];
  #from = 0;
  /** Undefined while it does not poll. */
  #newest: EventPosition | undefined;
  /** Followers that wait for their first poll. */
  #joining = 0;
  #polledAt = Number.NEGATIVE_INFINITY;
  #polling: Promise<EventPosition> | undefined;
  /** The poll that begins when the current one has ended. */
  #next: Promise<EventPosition> | undefined;
  #soon: NodeJS.Timeout | undefined;
  #interval: NodeJS.Timeout | undefined;

  /** `pause`: minimum time between two polls, however often it is woken, in milliseconds. */
  constructor(log: UserEventLog, pause: number) {
    this.#log = log;
    this.#pause = pause;
  }

  /** How many followers there are now. */
  get followers(): number {
    return this.#followers.size;
  }

  /**
   * All events behind a position, or from now on. Fails with EventsGoneError when the event at the position is not kept
   * any more, as the follower does when that happens later.
   */
  async follow(from?: EventPosition): Promise<EventFollower> {
    this.#joining++;
    try {
      const newest = await this.#pollFromNow();
      if (from !== undefined && (await this.#log.read(from, 1)) === undefined) throw new EventsGoneError();
      this.#interval ??= setInterval(() => this.#tick(), INTERVAL).unref();
      const follower = new EventFollower(from ?? newest, this.#events);
      this.#followers.add(follower);
      return follower;
    } finally {
      this.#joining--;
    }
  }

  async subscribe(type: UserEventType): Promise<AsyncIterableIterator<User>> {
    return usersOf(await this.follow(), type);
  }

  /** Called when there may be new events. */
  wake(): void {
    if (this.#newest === undefined || this.#soon !== undefined) return;
    const wait = Math.max(0, this.#polledAt + this.#pause - performance.now());
    this.#soon = setTimeout(() => {
      this.#soon = undefined;
      this.#tick();
    }, wait);
  }

  [Symbol.dispose](): void {
    this.#stop();
  }

  readonly #events: FollowedEvents = {
    recent: (after) => {
      if (this.#newest?.position === after.position) return [];
      // A follower may begin at an event that is newer than the last poll.
      if (this.#newest === undefined || after.position > this.#newest.position) return undefined;
      if (after.position < this.#from) return undefined;
      const next = this.#recent.findLastIndex(({ position }) => position <= after.position) + 1;
      return this.#recent.slice(next, next + this.#rows.rowsFor(0));
    },
    read: async (after) => {
      const events = await this.#read(after, this.#rows.rowsFor(0));
      if (events === undefined) throw new EventsGoneError();
      return events;
    },
    leave: (follower) => {
      this.#followers.delete(follower);
    },
  };

  #tick(): void {
    if (this.#followers.size + this.#joining === 0) this.#stop();
    // The next poll makes up for one that fails.
    else this.#pollFromNow().catch(() => {});
  }

  #stop(): void {
    this.#newest = undefined;
    this.#recent = [];
    clearTimeout(this.#soon);
    clearInterval(this.#interval);
    this.#soon = undefined;
    this.#interval = undefined;
  }

  /** A poll that begins after this call; all calls until it begins share it. Resolves to the newest event. */
  #pollFromNow(): Promise<EventPosition> {
    this.#next ??= Promise.resolve(this.#polling)
      .catch(() => {})
      .then(() => {
        this.#next = undefined;
        this.#polling = this.#poll();
        return this.#polling;
      });
    return this.#next;
  }

  async #poll(): Promise<EventPosition> {
    this.#polledAt = performance.now();
    let newest = this.#newest;
    while (newest !== undefined) {
      const limit = this.#rows.rowsFor(0);
      const events: readonly UserEvent[] | undefined = await this.#read(newest, limit);
      // The database was replaced, by an older backup for example.
      if (events === undefined) break;
      newest = events.at(-1) ?? newest;
      this.#keep(events, newest);
      if (events.length < limit) return newest;
    }
    newest = await this.#log.newest();
    this.#recent = [];
    this.#from = newest.position;
    this.#newest = newest;
    for (const follower of this.#followers) follower.doubt();
    return newest;
  }

  async #read(after: EventPosition, limit: number): Promise<readonly UserEvent[] | undefined> {
    const events = await this.#log.read(after, limit);
    if (events !== undefined) {
      const length = events.reduce((sum, { json }) => sum + json.length, 0);
      this.#rows.read(length, events.length);
    }
    return events;
  }

  #keep(events: readonly UserEvent[], newest: EventPosition): void {
    if (events.length === 0) return;
    this.#recent.push(...events);
    const dropped = this.#recent.splice(0, this.#recent.length - MAX_RECENT).at(-1);
    if (dropped !== undefined) this.#from = dropped.position;
    this.#newest = newest;
    for (const follower of this.#followers) follower.wake();
  }
}

/** The users of the events of one type. */
function usersOf(events: EventFollower, type: UserEventType): AsyncIterableIterator<User> {
  const waiting: User[] = [];
  return {
    async next() {
      for (;;) {
        const user = waiting.shift();
        if (user !== undefined) return { value: user, done: false };
        const { value, done } = await events.next();
        if (done === true) return { value: undefined, done };
        for (const event of value) if (event.type === type) waiting.push(userOfJson(event.json));
      }
    },
    async return() {
      await events.return();
      waiting.length = 0;
      return { value: undefined, done: true };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

/** Where a follower gets its events. */
interface FollowedEvents {
  /** Events behind a position as far as they are in memory, none at the newest one; undefined when they have to be read. */
  recent(after: EventPosition): readonly UserEvent[] | undefined;
  /** Reads events behind a position. Fails with EventsGoneError and StoreUnavailableError. */
  read(after: EventPosition): Promise<readonly UserEvent[]>;
  /** Called once, when the follower has ended. */
  leave(follower: EventFollower): void;
}

type Next = IteratorResult<readonly UserEvent[], undefined>;

const DONE: Next = { value: undefined, done: true };

/** The events behind a position, a few at a time, as fast as its reader asks for them: one that is slow holds nothing. */
export class EventFollower implements AsyncIterableIterator<readonly UserEvent[], undefined> {
  /** Where it began. */
  readonly start: EventPosition;
  #at: EventPosition;
  readonly #events: FollowedEvents;
  #waiting: PromiseWithResolvers<void> | undefined;
  #isDoubtful = false;
  #ended = false;

  constructor(start: EventPosition, events: FollowedEvents) {
    this.start = start;
    this.#at = start;
    this.#events = events;
  }

  async next(): Promise<Next> {
    while (!this.#ended) {
      let found = this.#isDoubtful ? undefined : this.#events.recent(this.#at);
      if (found === undefined) {
        this.#isDoubtful = false;
        found = await this.#events.read(this.#at);
        // Others may have come meanwhile, of which it was not told.
        if (found.length === 0) found = this.#events.recent(this.#at) ?? found;
        if (this.#ended) break;
      }
      const last = found.at(-1);
      if (last !== undefined) {
        this.#at = last;
        return { value: found, done: false };
      }
      this.#waiting ??= Promise.withResolvers<void>();
      await this.#waiting.promise;
    }
    return DONE;
  }

  /** Tells it that there may be more. */
  wake(): void {
    this.#waiting?.resolve();
    this.#waiting = undefined;
  }

  /** Tells it that the events are others than before: it reads whether its own is still there. */
  doubt(): void {
    this.#isDoubtful = true;
    this.wake();
  }

  return(): Promise<Next> {
    if (!this.#ended) {
      this.#ended = true;
      this.#events.leave(this);
      this.wake();
    }
    return Promise.resolve(DONE);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

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
