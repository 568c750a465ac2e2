import type { MaybePromise } from '../core/maybe-promise.ts';
import type { DeliveryLog } from '../inbox/delivery-log.ts';
import type { Inbox } from '../inbox/inbox.ts';
import type { AuditStore } from '../observability/audit/audit.ts';
import type { DatabaseUserStore } from '../users/database-user-store.ts';
import type { UserEventLog } from '../users/user-event.ts';
import type { UserEventFeed } from '../users/user-event-feed.ts';
import type { ApiTokens } from './api-tokens.ts';

/** A process that has the database open. */
export interface DatabaseProcess {
  /** Its host and its number there. */
  readonly name: string;
  /** Milliseconds since the epoch. */
  readonly since: number;
}

/** An open database: the stores of users and deliveries on one engine. The opener disposes of it. */
export interface Database extends AsyncDisposable {
  readonly users: DatabaseUserStore;
  /** What is done to users, whichever process on the database does it. */
  readonly userFeed: UserEventFeed;
  /** What it keeps of that. */
  readonly userEvents: UserEventLog;
  readonly inbox: Inbox;
  readonly deliveries: DeliveryLog;
  readonly apiTokens: ApiTokens;
  /** The processes that have this database open, this one too; absent where there can only be one. */
  processes?(): Promise<readonly DatabaseProcess[]>;
  readonly audit: AuditStore;
  /** One read from each table of the doors; throws or rejects when the engine does not answer. */
  ping(): MaybePromise<void>;
  /**
   * A commit through the write queue that stores nothing, as slow as a real one, on the pages that users and deliveries go
   * to; throws or rejects when writes fail.
   */
  pingWriter(): MaybePromise<void>;
  /** The time that a write of users has been waiting for its commit, in milliseconds; 0 when none is. */
  writeDelay(): number;
  /** Size of the WAL of an SQLite file, 0 without a file; absent on other engines. */
  walBytes?(): number;
  /**
   * Aborts once durability is lost (a failed fsync); its reason is the error. Every later write fails, and the process
   * should exit.
   */
  readonly failed: AbortSignal;
}

/** Reads what the doors read, where it is new: a damaged page fails the reads of its table and no others. */
export const PING = `
  SELECT (SELECT email FROM users ORDER BY id LIMIT 1), (SELECT email FROM users ORDER BY id DESC LIMIT 1),
    (SELECT id FROM deliveries ORDER BY seq DESC LIMIT 1), (SELECT status FROM jobs ORDER BY seq DESC LIMIT 1)`;
