import type { AuditStore } from '../access/audit.ts';
import { DatabaseOpenError } from '../core/errors.ts';
import type { MaybePromise } from '../core/scheduler.ts';
import type { Inbox } from '../inbox/inbox.ts';
import type { DeliveryLog } from '../inbox/operations.ts';
import type { EventLog, RelationFeed, UserEvent, UserEventFeed } from '../relations/events.ts';
import type { Relation } from '../relations/relation.ts';
import type { RowStores } from '../relations/rows/rows.ts';
import type { DatabaseUserStore } from '../relations/user-stores.ts';
import type { SendingLog, SendingStore } from '../sending/store.ts';
import type { DatabaseObserver } from './batch-queue.ts';
import type { EventLimits } from './event-retention.ts';
import type { UserIndexOptions } from './list-sql.ts';
import type { StartMode } from './schema/migrate.ts';
import type { HeldWal } from './sqlite-writer/checkpointer.ts';
import type { ApiTokens } from './stores/access-stores.ts';

/** The rows of declared relations. */
interface OpenRelations {
  readonly stores: RowStores;
  /** Columns and tables of relations that no longer are declared: `books.subtitle`, `loans`. */
  readonly undeclared: readonly string[];
  /** The changes of the relations that record them; undefined if none does. */
  readonly changes: RelationFeed | undefined;
}

/** A process that has opened the database. */
interface DatabaseProcess {
  /** Host name and process id. */
  readonly name: string;
  /** Milliseconds since the epoch. */
  readonly since: number;
}

/**
 * An open database: the stores of users and deliveries on one engine. The caller that opened it must dispose
 * of it.
 */
export interface Database extends AsyncDisposable {
  readonly users: DatabaseUserStore;
  /** The changes of users, made by any process on the database. */
  readonly userFeed: UserEventFeed;
  /** The stored changes of users. */
  readonly userEvents: EventLog<UserEvent>;
  readonly inbox: Inbox;
  readonly deliveries: DeliveryLog;
  /** Tenants, their endpoints, and event types. */
  readonly sending: SendingStore;
  /** The events of tenants and their attempts. */
  readonly sendingLog: SendingLog;
  readonly apiTokens: ApiTokens;
  /** The processes that have opened this database, including this one; absent if there can be only one. */
  processes?(): Promise<readonly DatabaseProcess[]>;
  readonly audit: AuditStore;
  /**
   * Makes the steps that the tables of relations need and a start may make, and opens their rows; called once.
   * Fails with DatabaseOpenError.
   */
  openRelations(relations: readonly Relation[]): Promise<OpenRelations>;
  /** Reads one row from each table that the doors use; throws or rejects if the engine does not answer. */
  ping(): MaybePromise<void>;
  /**
   * Makes an empty commit through the write queue that is as slow as a real one and touches the pages that
   * users and deliveries are written to; throws or rejects if writes fail.
   */
  pingWriter(): MaybePromise<void>;
  /** How long a write of users has been waiting for its commit, in milliseconds; 0 if none is waiting. */
  writeDelay(): number;
  /** Size of the WAL of an SQLite file in bytes, 0 in memory; absent on other engines. */
  walBytes?(): number;
  /** How many reads a replica has answered; absent without one. */
  replicaReads?(): number;
  /**
   * Aborts once durability is lost (a failed fsync), with the error as its reason. All later writes fail, and
   * the process should exit.
   */
  readonly failed: AbortSignal;
}

/** Reads the newest rows that the doors use. A damaged page fails only reads of its table. */
export const PING = `
  SELECT (SELECT email FROM users ORDER BY id LIMIT 1), (SELECT email FROM users ORDER BY id DESC LIMIT 1),
    (SELECT id FROM deliveries ORDER BY seq DESC LIMIT 1), (SELECT status FROM jobs ORDER BY seq DESC LIMIT 1)`;

/** Options for opening a database. */
export interface OpenOptions {
  readonly observer?: DatabaseObserver;
  /** A replica to read users from; PostgreSQL only. */
  readonly replica?: Replica | undefined;
  /** Whether to bring the schema up to date; if false, an outdated schema is an error. Default: true. */
  readonly mayMigrate?: boolean;
  /** Which steps to the tables of relations to make if `mayMigrate`. Default: additive. */
  readonly relationSteps?: StartMode | undefined;
  /**
   * Whether a service will run on the database. It must then be writable, and an SQLite file refuses a second
   * service, even in the same process. Opening the file without this option does not conflict with a service.
   * Default: false.
   */
  readonly forService?: boolean;
  /**
   * Whether to run potentially long reads of an SQLite file on a separate thread, which starts with the first
   * one. Default: true.
   */
  readonly readThread?: boolean;
  /** Which indexes of users to keep. If absent, indexes stay as they are, and lists find users only by id. */
  readonly userIndexes?: UserIndexOptions | undefined;
  /** Which events of users to keep; if absent, none are removed. */
  readonly userEvents?: EventLimits | undefined;
  /**
   * Called when a reader has held the WAL of an SQLite file for 10 s, and again each time that duration has
   * doubled.
   */
  readonly onHeldWal?: ((held: HeldWal) => void) | undefined;
}

/** Which steps to the tables of relations a start makes. */
export function startMode({ mayMigrate = true, relationSteps = 'additive' }: OpenOptions): StartMode {
  return mayMigrate ? relationSteps : 'never';
}

/** A read replica of the database. */
export interface Replica {
  readonly url: string;
  /**
   * After its own write, a process reads from the primary for this long, in milliseconds, and until the replica has the
   * write; 0 turns both off.
   */
  readonly readYourWrites: number;
}

const SQLITE = 'sqlite:';
const SEVERAL = /^(?<scheme>postgres(?:ql)?:\/\/)(?<user>[^/?#]*@)?(?<hosts>[^/?#@]+)(?<rest>.*)$/s;

/**
 * A parsed database URL: `place` is the path of an SQLite file (or `:memory:`), or the URL itself for
 * PostgreSQL.
 */
interface DatabaseAddress {
  readonly engine: 'sqlite' | 'postgres';
  readonly place: string;
}

/** Parses a database URL; returns undefined for any other text. */
export function parseDatabaseUrl(url: string): DatabaseAddress | undefined {
  if (url.startsWith(SQLITE)) return { engine: 'sqlite', place: url.slice(SQLITE.length) };
  if (/^postgres(?:ql)?:\/\//.test(url)) return { engine: 'postgres', place: url };
  return undefined;
}

/**
 * Parses a database URL. Throws DatabaseOpenError; the message omits the URL, which may contain a password.
 */
export function databaseAt(url: string): DatabaseAddress {
  const address = parseDatabaseUrl(url);
  if (address !== undefined) return address;
  throw new DatabaseOpenError('The database URL must start with sqlite: or postgres://');
}

/**
 * The URL of each server in a database URL, in order: `postgres://user@one:5432,two:5433/db` names two
 * servers. Any other URL is returned unchanged.
 */
export function serverUrls(url: string): readonly string[] {
  const { scheme, user = '', hosts, rest } = SEVERAL.exec(url)?.groups ?? {};
  if (hosts === undefined) return [url];
  return hosts.split(',').map((host) => `${scheme}${user}${host}${rest}`);
}
