import type { MaybePromise } from '../core/maybe-promise.ts';
import type { DeliveryLog } from '../inbox/delivery-log.ts';
import type { Inbox } from '../inbox/inbox.ts';
import type { DatabaseUserStore } from '../users/database-user-store.ts';
import type { UserFeed } from '../users/user-feed.ts';

/** An open database: the stores of users and deliveries on one engine. Whoever opens it disposes of it. */
export interface Database extends AsyncDisposable {
  readonly users: DatabaseUserStore;
  /** New users, whichever process on the database creates them. */
  readonly userFeed: UserFeed;
  readonly inbox: Inbox;
  readonly deliveries: DeliveryLog;
  /** One real round trip to the engine; throws or rejects when it does not answer. */
  ping(): MaybePromise<void>;
  /** One round trip on the way that every write takes, storing nothing; as late as a write would be. */
  pingWriter(): MaybePromise<void>;
  /**
   * Aborted once the engine can no longer promise durability (a failed fsync); the reason is the error.
   * From then on every write is refused and the process should end.
   */
  readonly failed: AbortSignal;
}
