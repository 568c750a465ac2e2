import { ExpectedError } from '../core/expected-error.ts';
import type { MaybePromise } from '../core/maybe-promise.ts';

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
