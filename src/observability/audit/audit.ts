import type { MaybePromise } from '../../core/maybe-promise.ts';

/** What is recorded beside who and what; texts of clients are cut. */
export type AuditData = Readonly<Record<string, string | number | undefined>>;

/** Something that has happened. */
export interface AuditEntry {
  /** Who did it: the name of a user or token; `anonymous` without one. */
  readonly principal: string;
  /** In Actuator's style: `AUTHENTICATION_FAILURE`. */
  readonly type: string;
  readonly data: AuditData;
  /** Whether somebody changed the service or saw its inside; the others are refusals, of which clients choose the number. */
  readonly isAction: boolean;
}

/** Takes note of what has happened, off the path of the request. Never throws, never waits. */
export interface Audit {
  record(entry: AuditEntry): void;
}

/** An entry with the time when it happened, in milliseconds since 1970. */
export interface AuditEvent extends AuditEntry {
  readonly at: number;
}

/** Which events are asked for. */
export interface AuditQuery {
  readonly principal?: string | undefined;
  readonly type?: string | undefined;
  /** In milliseconds since 1970; events of that moment are left out. */
  readonly after?: number | undefined;
  readonly limit: number;
}

/** Keeps events. Fails with StoreUnavailableError. */
export interface AuditStore {
  append(events: readonly AuditEvent[]): Promise<void>;
  /** The latest events, oldest first. */
  find(query: AuditQuery): MaybePromise<readonly AuditEvent[]>;
  /** Removes what happened before `before`, and the oldest beyond `max` actions and `max` refusals; resolves to how many. */
  prune(before: number, max: number): Promise<number>;
}

/** Who did something without saying who. */
export const ANONYMOUS = 'anonymous';
