import type { Database } from '../database.ts';
import { requireNothingPending } from '../migration-files.ts';
import { unobserved } from '../observer.ts';
import type { OpenOptions } from '../open-options.ts';
import { PostgresDeliveryLog } from './inbox/delivery-log.ts';
import { PostgresInbox } from './inbox/inbox.ts';
import { migrate, pendingMigrations } from './migrate.ts';
import { Bell } from './notifier.ts';
import { connector } from './pool/connector.ts';
import { onFirst } from './pool/first-connection.ts';
import { Server } from './pool/server.ts';
import { PostgresUserFeed } from './user-feed.ts';
import { UserReads } from './user-reads.ts';
import { PostgresUserStore } from './user-store.ts';

const PING = { name: 'ping', text: 'SELECT 1 FROM users LIMIT 1' };

/**
 * Opens a PostgreSQL database, up to date and ready; without `mayMigrate` one whose schema is up to date already. Any
 * number of processes may have it open.
 * Fails with DatabaseOpenError.
 */
export async function openPostgres(
  url: string,
  { observer = unobserved, replica, mayMigrate = true }: OpenOptions,
): Promise<Database> {
  await onFirst(url, async (connection) => {
    if (mayMigrate) await migrate(connection);
    else requireNothingPending(await pendingMigrations(connection));
  });

  const connect = connector(url);
  const server = new Server(connect);
  const bell = new Bell(connect);
  await bell.open();
  const userFeed = new PostgresUserFeed(server);
  bell.onRing('users', () => userFeed.wake());
  const reads = new UserReads(server, replica);
  const users = new PostgresUserStore({
    server,
    reads,
    observer,
    onCreated() {
      userFeed.wake();
      bell.ring('users');
    },
  });
  const inbox = new PostgresInbox(server, bell, observer);
  return {
    users,
    userFeed,
    inbox,
    deliveries: new PostgresDeliveryLog(server, bell),
    async ping() {
      await server.read(PING, []);
    },
    pingWriter: () => users.commitNothing(),
    // A connection that is lost is opened again, and the server answers for what it has committed.
    failed: new AbortController().signal,
    async [Symbol.asyncDispose]() {
      userFeed[Symbol.dispose]();
      await Promise.all([users.close(), inbox.close()]);
      await Promise.all([bell, reads, server].map((each) => each[Symbol.asyncDispose]()));
    },
  };
}
