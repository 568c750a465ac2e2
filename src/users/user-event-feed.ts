import { userOfJson } from './database-user-store.ts';
import { EventFollower, type FollowedEvents } from './event-follower.ts';
import type { User } from './user.ts';
import {
  type EventPosition,
  EventsGoneError,
  type UserEvent,
  type UserEventLog,
  type UserEventType,
} from './user-event.ts';
import type { UserFeed } from './user-feed.ts';
import { PageRows } from './user-pages.ts';

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
