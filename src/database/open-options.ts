import type { EventLimits } from './event-retention.ts';
import type { DatabaseObserver } from './observer.ts';
import type { HeldWal } from './sqlite/writer/checkpointer.ts';
import type { UserIndexOptions } from './user-list/user-indexes.ts';

/** How a database is opened. */
export interface OpenOptions {
  readonly observer?: DatabaseObserver;
  /** A replica that users are read from; PostgreSQL only. */
  readonly replica?: Replica | undefined;
  /** Whether to bring the schema up to date; default true. With false an outdated schema is an error. */
  readonly mayMigrate?: boolean;
  /**
   * Whether a service runs on the database: then it must be writable, and an SQLite file takes no second service, in
   * this process neither. Who opens the file without this is not held up. Default false.
   */
  readonly forService?: boolean;
  /**
   * Whether reads that can take long run on a thread of their own, so that the caller's goes on meanwhile; of an SQLite
   * file only. The thread begins with the first of them. Default true.
   */
  readonly readThread?: boolean;
  /** Whether the bodies of new deliveries go to slots that are emptied at once; PostgreSQL only. Default false. */
  readonly partitions?: boolean;
  /** What the users are indexed for; when absent the indexes stay, and lists find users by their ids only. */
  readonly userIndexes?: UserIndexOptions | undefined;
  /** Which events of users are kept; when absent nothing is removed. */
  readonly userEvents?: EventLimits | undefined;
  /** Called while a reader has held the WAL of an SQLite file for 10 s, and again whenever that time has doubled. */
  readonly onHeldWal?: ((held: HeldWal) => void) | undefined;
}

/** A read replica of the database. */
export interface Replica {
  readonly url: string;
  /** After a write of its own, a process reads from the primary for this long, in milliseconds. */
  readonly readYourWrites: number;
}
