import { ExpectedError } from '../core/errors.ts';
import type { MaybePromise } from '../core/scheduler.ts';
import { PageRows } from './lists.ts';
import type { Relation } from './relation.ts';
import type { User } from './user.ts';
import { userOfJson } from './user-stores.ts';

/** The kind of change. */
export type ChangeType = 'created' | 'updated' | 'deleted';

/**
 * Identifies an event: its position in commit order, and the time of the change in milliseconds since 1970.
 */
export interface EventPosition {
  readonly position: number;
  readonly at: number;
}

/** A change of a row. */
export interface ChangeEvent extends EventPosition {
  readonly type: ChangeType;
  /** What clients get of it, as JSON. */
  readonly json: string;
}

/** A change of a user; its JSON is the user after the change, or before the deletion. */
export type UserEvent = ChangeEvent;

/** The kinds of changes. */
export const CHANGE_TYPES: readonly ChangeType[] = ['created', 'updated', 'deleted'];

/**
 * A change of a row of a relation; its JSON is `{position, relation, type, key, row}` with the row after the
 * change, or before its removal.
 */
export interface RelationEvent extends ChangeEvent {
  readonly relation: string;
  /** The name of the event: `book.created`. */
  readonly name: string;
  /** The key of the row, as in its path. */
  readonly key: string;
  /** The row before an update as JSON, if rules need it to tell who could read it. */
  readonly before?: string | undefined;
}

/** The name of the event of a change: `book.created`. */
export function changeName({ one }: Pick<Relation, 'one'>, type: ChangeType): string {
  return `${one}.${type}`;
}

/** Some events, in order. */
export interface EventPage<E extends ChangeEvent = ChangeEvent> {
  readonly events: readonly E[];
  /** Whether there may be more. */
  readonly more: boolean;
}

/** The events in a database, in commit order. Reads fail with StoreUnavailableError. */
export interface EventLog<E extends ChangeEvent = ChangeEvent> {
  /** The newest event. */
  newest(): MaybePromise<EventPosition>;
  /**
   * Up to `limit` events after one that was read before, and fewer if they have more than about `size` characters
   * of JSON; undefined if that one is no longer kept.
   */
  read(after: EventPosition, limit: number, size: number): MaybePromise<EventPage<E> | undefined>;
  /**
   * Removes up to `limit` of the oldest events that exceed `maxEvents` or are older than `before`. Keeps the
   * newest event, and the unread events of a relay that has advanced since `before`. Resolves to whether
   * there may be more.
   */
  prune(maxEvents: number, before: number, limit: number): Promise<boolean>;
}

/** The last event that a reader received is no longer kept, so later ones may be missing too. */
export class EventsGoneError extends ExpectedError {
  override readonly name = 'EventsGoneError';
  readonly code = 'EVENTS_GONE';

  constructor() {
    super('This event is no longer kept; read the list again, and follow the events from now on');
  }
}

/** Notifies subscribers of changes of users. */
export interface UserFeed {
  /**
   * Users created, updated or deleted from now on, until the iterator is returned: every change acknowledged
   * after this resolves, exactly once. Fails with StoreUnavailableError while the database cannot answer. A
   * subscriber that does not keep up gets SlowSubscriberError or EventsGoneError.
   */
  subscribe(type: ChangeType): MaybePromise<AsyncIterableIterator<User>>;
}

/** Maximum number of events per read; fewer if they are large. */
const PAGE = 1_000;
/**
 * Number of events kept in memory for all followers, and their size in characters; a follower that is further
 * behind reads the log.
 */
const MAX_RECENT = { events: 5_000, size: 4 * 1024 * 1024 } as const;
/** About how many characters of JSON a follower and a poll read at once; one event may be larger. */
const READ_SIZE = 256 * 1024;
/** Time between two polls without a wake-up, in milliseconds. */
const INTERVAL = 1_000;

/**
 * Delivers the events of a log to any number of followers, which share one poll while they keep up. It polls
 * when `wake` is called, and every second for changes of which no notification came; it does not poll without
 * followers.
 */
export class EventFeed<E extends ChangeEvent> implements Disposable {
  readonly #log: EventLog<E>;
  readonly #pause: number;
  readonly #rows = new PageRows(PAGE);
  readonly #followers = new Set<EventFollower<E>>();
  /** The newest events: after the position `#from`, up to `#newest`. */
  #recent: E[] = [];
  #from = 0;
  /** The size of `#recent` in characters. */
  #size = 0;
  /** Undefined while it does not poll. */
  #newest: EventPosition | undefined;
  /** Number of followers waiting for their first poll. */
  #joining = 0;
  #polledAt = Number.NEGATIVE_INFINITY;
  #polling: Promise<EventPosition> | undefined;
  /** The poll that starts when the current one has ended. */
  #next: Promise<EventPosition> | undefined;
  #soon: NodeJS.Timeout | undefined;
  #interval: NodeJS.Timeout | undefined;
  #passed = 0;

  /** `pause`: minimum time between two polls, however often `wake` is called, in milliseconds. */
  constructor(log: EventLog<E>, pause: number) {
    this.#log = log;
    this.#pause = pause;
  }

  /** The current number of followers. */
  get followers(): number {
    return this.#followers.size;
  }

  /** How many followers have ended because their next events were removed before they were read. */
  get passed(): number {
    return this.#passed;
  }

  /**
   * Follows all events after a position, or from now on. Fails with EventsGoneError if the event at the
   * position is no longer kept; the follower fails in the same way if that happens later.
   */
  async follow(from?: EventPosition): Promise<EventFollower<E>> {
    this.#joining++;
    try {
      const newest = await this.#pollFromNow();
      if (from !== undefined && (await this.#log.read(from, 1, READ_SIZE)) === undefined)
        throw new EventsGoneError();
      this.#interval ??= setInterval(() => this.#tick(), INTERVAL).unref();
      const follower = new EventFollower(from ?? newest, this.#events);
      this.#followers.add(follower);
      return follower;
    } finally {
      this.#joining--;
    }
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

  readonly #events: FollowedEvents<E> = {
    recent: (after) => {
      if (this.#newest?.position === after.position) return [];
      // A follower may start at an event that is newer than the last poll.
      if (this.#newest === undefined || after.position > this.#newest.position) return undefined;
      if (after.position < this.#from) return undefined;
      const next = this.#recent.findLastIndex(({ position }) => position <= after.position) + 1;
      return upToSize(this.#recent.slice(next, next + this.#rows.rowsFor(0)));
    },
    read: async (after) => {
      const page = await this.#read(after);
      if (page === undefined) {
        this.#passed++;
        throw new EventsGoneError();
      }
      return page.events;
    },
    leave: (follower) => {
      this.#followers.delete(follower);
    },
  };

  #tick(): void {
    if (this.#followers.size + this.#joining === 0) this.#stop();
    // The next poll makes up for a failed one.
    else this.#pollFromNow().catch(() => {});
  }

  #stop(): void {
    this.#newest = undefined;
    this.#recent = [];
    this.#size = 0;
    clearTimeout(this.#soon);
    clearInterval(this.#interval);
    this.#soon = undefined;
    this.#interval = undefined;
  }

  /** Polls after this call; calls made before the poll starts share it. Resolves to the newest event. */
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
      const page: EventPage<E> | undefined = await this.#read(newest);
      // The database was replaced, for example by an older backup.
      if (page === undefined) break;
      newest = page.events.at(-1) ?? newest;
      this.#keep(page.events, newest);
      if (!page.more) return newest;
    }
    newest = await this.#log.newest();
    this.#recent = [];
    this.#size = 0;
    this.#from = newest.position;
    this.#newest = newest;
    for (const follower of this.#followers) follower.doubt();
    return newest;
  }

  async #read(after: EventPosition): Promise<EventPage<E> | undefined> {
    const page = await this.#log.read(after, this.#rows.rowsFor(0), READ_SIZE);
    if (page !== undefined) this.#rows.read(sizeOf(page.events), page.events.length);
    return page;
  }

  #keep(events: readonly E[], newest: EventPosition): void {
    if (events.length === 0) return;
    this.#recent.push(...events);
    this.#size += sizeOf(events);
    let dropped = 0;
    for (const { json } of this.#recent) {
      const isWithin = this.#recent.length - dropped <= MAX_RECENT.events && this.#size <= MAX_RECENT.size;
      if (isWithin) break;
      dropped++;
      this.#size -= json.length;
    }
    this.#from = this.#recent.splice(0, dropped).at(-1)?.position ?? this.#from;
    this.#newest = newest;
    for (const follower of this.#followers) follower.wake();
  }
}

/** The first events that are not larger than `READ_SIZE` together, at least one. */
function upToSize<E extends ChangeEvent>(events: readonly E[]): readonly E[] {
  let size = 0;
  const end = events.findIndex(({ json }, i) => {
    size += json.length;
    return size > READ_SIZE && i > 0;
  });
  return end === -1 ? events : events.slice(0, end);
}

function sizeOf(events: readonly ChangeEvent[]): number {
  return events.reduce((sum, { json }) => sum + json.length, 0);
}

/** The changes of all relations of a database that record them. */
export type RelationFeed = EventFeed<RelationEvent>;

/** The feed of the users of a database. */
export class UserEventFeed extends EventFeed<UserEvent> implements UserFeed {
  async subscribe(type: ChangeType): Promise<AsyncIterableIterator<User>> {
    return usersOf(await this.follow(), type);
  }
}

/** The users of the events of one type. */
function usersOf(events: EventFollower, type: ChangeType): AsyncIterableIterator<User> {
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

/** The source of a follower's events. */
interface FollowedEvents<E extends ChangeEvent> {
  /**
   * Events after a position from memory, empty at the newest one; undefined if they have to be read from the
   * log.
   */
  recent(after: EventPosition): readonly E[] | undefined;
  /** Reads events after a position from the log. Fails with EventsGoneError and StoreUnavailableError. */
  read(after: EventPosition): Promise<readonly E[]>;
  /** Called once, when the follower has ended. */
  leave(follower: EventFollower<E>): void;
}

const DONE = { value: undefined, done: true } as const;

/**
 * Yields the events after a position in small batches. It reads only when its consumer asks, so a slow
 * consumer holds no events.
 */
export class EventFollower<E extends ChangeEvent = ChangeEvent>
  implements AsyncIterableIterator<readonly E[], undefined>
{
  /** The position at which it started. */
  readonly start: EventPosition;
  #at: EventPosition;
  readonly #events: FollowedEvents<E>;
  #waiting: PromiseWithResolvers<void> | undefined;
  #isDoubtful = false;
  #ended = false;

  constructor(start: EventPosition, events: FollowedEvents<E>) {
    this.start = start;
    this.#at = start;
    this.#events = events;
  }

  async next(): Promise<IteratorResult<readonly E[], undefined>> {
    while (!this.#ended) {
      let found = this.#isDoubtful ? undefined : this.#events.recent(this.#at);
      if (found === undefined) {
        this.#isDoubtful = false;
        found = await this.#events.read(this.#at);
        // More events may have arrived during the read, before this follower could be woken.
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

  /** Signals that there may be more events. */
  wake(): void {
    this.#waiting?.resolve();
    this.#waiting = undefined;
  }

  /** Signals that the log was replaced, so the follower has to check whether its position still exists. */
  doubt(): void {
    this.#isDoubtful = true;
    this.wake();
  }

  return(): Promise<IteratorResult<readonly E[], undefined>> {
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

/** Maximum number of users waiting for a subscriber; beyond it the subscriber is dropped. */
const MAX_WAITING = 1_000;

/** A subscriber did not keep up; what it missed can be read from the store. */
export class SlowSubscriberError extends Error {
  override readonly name = 'SlowSubscriberError';
  readonly code = 'SLOW_SUBSCRIBER';
}

/**
 * The feed of users in memory, which are created and never changed. Publishes each user to the current
 * subscribers and keeps none for later ones.
 */
export class LocalUserFeed implements UserFeed {
  readonly #subscribers = new Set<(user: User) => void>();

  /** The current number of subscribers. */
  get subscribers(): number {
    return this.#subscribers.size;
  }

  publish(user: User): void {
    for (const notify of this.#subscribers) notify(user);
  }

  /**
   * Users from now on, until the iterator is returned. A subscriber that falls more than `MAX_WAITING` users
   * behind ends with SlowSubscriberError.
   */
  subscribe(type: ChangeType = 'created'): AsyncIterableIterator<User> {
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
