import type { EventPosition, UserEvent } from './user-event.ts';

/** Where a follower gets its events. */
export interface FollowedEvents {
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
