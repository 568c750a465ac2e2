import type { Database } from '../database.ts';
import { DatabaseOpenError } from '../errors.ts';
import { type DatabaseObserver, unobserved } from '../observer.ts';
import type { Replica } from '../replica.ts';
import { Bell } from './bell.ts';
import type { Connection } from './connection.ts';
import { connector } from './connector.ts';
import { PostgresDeliveryLog } from './delivery-log.ts';
import { describeFault, sqlState } from './faults.ts';
import { PostgresInbox } from './inbox.ts';
import { migrate } from './migrate.ts';
import { Server } from './server.ts';
import { UserFollower } from './user-follower.ts';
import { UserReads } from './user-reads.ts';
import { PostgresUserStore } from './users.ts';

/** The oldest version of the server that has all we use. */
const OLDEST = 130_000;

/** What to do about the errors that a first start meets, by their SQLSTATE. */
const ADVICE: Readonly<Record<string, string>> = {
  '28000': 'Check the user and how the server lets it in (pg_hba.conf).',
  '28P01': 'Check the user and the password.',
  '3D000': 'Create the database first.',
  '42501': 'The user must be allowed to create tables: make it the owner of the database.',
  '53300': 'Raise max_connections of the server; each process takes up to ten.',
  '57P03': 'Start again when the server is ready.',
};

const PING = { name: 'ping', text: 'SELECT 1 FROM users LIMIT 1' };

/**
 * Opens a PostgreSQL database, migrated and ready. Any number of processes may have it open.
 * Fails with DatabaseOpenError.
 */
export async function openPostgres(
  url: string,
  observer: DatabaseObserver = unobserved,
  replica?: Replica,
): Promise<Database> {
  const connect = connector(url);
  try {
    await using connection = await connect();
    await checkServer(connection);
    await migrate(connection);
  } catch (cause) {
    const advice = ADVICE[sqlState(cause) ?? ''];
    throw new DatabaseOpenError(
      `The PostgreSQL database cannot be opened: ${describeFault(cause)}${advice === undefined ? '' : `. ${advice}`}`,
      { cause },
    );
  }

  const server = new Server(connect);
  const bell = new Bell(connect);
  await bell.open();
  const arrivals = new UserFollower(server);
  bell.onRing('users', () => arrivals.wake());
  const reads = new UserReads(server, replica);
  const users = new PostgresUserStore({
    server,
    reads,
    observer,
    onCreated() {
      arrivals.wake();
      bell.ring('users');
    },
  });
  const inbox = new PostgresInbox(server, bell, observer);
  return {
    users,
    arrivals,
    inbox,
    deliveries: new PostgresDeliveryLog(server, bell),
    async ping() {
      await server.read(PING, []);
    },
    pingWriter: () => users.commitNothing(),
    // A connection that is lost is opened again, and the server answers for what it has committed.
    failed: new AbortController().signal,
    async [Symbol.asyncDispose]() {
      arrivals[Symbol.dispose]();
      await Promise.all([users.close(), inbox.close()]);
      await Promise.all([bell, reads, server].map((each) => each[Symbol.asyncDispose]()));
    },
  };
}

/** Throws DatabaseOpenError for a server that is too old. */
async function checkServer(connection: Connection): Promise<void> {
  const [row] = await connection.run({ text: `SELECT current_setting('server_version_num')::int` }, []);
  const [version = 0] = (row ?? []) as [number?];
  if (version < OLDEST) {
    throw new DatabaseOpenError(`the server is too old; it takes PostgreSQL ${OLDEST / 10_000} or newer.`);
  }
}
