import type { AuditStore } from '../access/audit.ts';
import { DatabaseOpenError } from '../core/errors.ts';
import type { MaybePromise } from '../core/maybe-promise.ts';
import type { Inbox } from '../inbox/inbox.ts';
import type { DeliveryLog } from '../inbox/operations.ts';
import type { UserEventFeed, UserEventLog } from '../relations/events.ts';
import type { DatabaseUserStore } from '../relations/user-stores.ts';
import type { ApiTokens } from './access-rows.ts';
import type { EventLimits } from './event-retention.ts';
import type { UserIndexOptions } from './list-sql.ts';
import type { DatabaseObserver } from './observer.ts';
import type { HeldWal } from './sqlite-writer/checkpointer.ts';

/** A process that has the database open. */
interface DatabaseProcess {
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

const SQLITE = 'sqlite:';
const SEVERAL = /^(?<scheme>postgres(?:ql)?:\/\/)(?<user>[^/?#]*@)?(?<hosts>[^/?#@]+)(?<rest>.*)$/s;

/** A parsed database URL: an SQLite file (or `:memory:`), or a PostgreSQL database by the URL itself. */
interface DatabaseAddress {
  readonly engine: 'sqlite' | 'postgres';
  readonly place: string;
}

/** Parses a database URL; undefined for anything else. */
export function parseDatabaseUrl(url: string): DatabaseAddress | undefined {
  if (url.startsWith(SQLITE)) return { engine: 'sqlite', place: url.slice(SQLITE.length) };
  if (/^postgres(?:ql)?:\/\//.test(url)) return { engine: 'postgres', place: url };
  return undefined;
}

/** Parses a database URL. Throws DatabaseOpenError, without the URL: it can hold a password. */
export function databaseAt(url: string): DatabaseAddress {
  const address = parseDatabaseUrl(url);
  if (address !== undefined) return address;
  throw new DatabaseOpenError(
    'The database URL names no engine of this version; it starts with sqlite: or postgres://',
  );
}

/**
 * The URLs of the servers in a database URL, in its order: `postgres://user@one:5432,two:5433/db` names two servers.
 * Any other URL is returned as it is.
 */
export function serverUrls(url: string): readonly string[] {
  const { scheme, user = '', hosts, rest } = SEVERAL.exec(url)?.groups ?? {};
  if (hosts === undefined) return [url];
  return hosts.split(',').map((host) => `${scheme}${user}${host}${rest}`);
}
