import type { MaybePromise } from '../core/maybe-promise.ts';
import type { DeliveryLog } from '../inbox/delivery-log.ts';
import type { Inbox } from '../inbox/inbox.ts';
import type { UserSource } from '../users/user-source.ts';
import type { UserStore } from '../users/user-store.ts';

/** An open database: the stores of users and deliveries on one engine. The opener disposes of it. */
export interface Database extends AsyncDisposable {
  readonly users: UserStore;
  /** New users of all processes; undefined for an engine that serves one process. */
  readonly arrivals?: UserSource;
  readonly inbox: Inbox;
  readonly deliveries: DeliveryLog;
  /** One read from the engine; throws or rejects when it does not answer. */
  ping(): MaybePromise<void>;
  /** An empty commit through the write queue, as slow as a real write; throws or rejects when writes fail. */
  pingWriter(): MaybePromise<void>;
  /**
   * Aborts once durability is lost (a failed fsync); its reason is the error. Every later write fails, and the process
   * should exit.
   */
  readonly failed: AbortSignal;
}
