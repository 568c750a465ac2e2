import { UserEventFeed } from '../../relations/events.ts';
import { unobserved } from '../batch-queue.ts';
import type { OpenChanges } from '../changes/change-log.ts';
import { type Database, type OpenOptions, PING, startMode } from '../database.ts';
import { EventRetention } from '../event-retention.ts';
import { requireNothingPending } from '../migration-files.ts';
import { awaitEarlierWriters, postgresInbox } from '../postgres-inbox/inbox.ts';
import type { Connection } from '../postgres-pool/connection.ts';
import { checkReplica, connector, onFirst } from '../postgres-pool/connector.ts';
import { Server } from '../postgres-pool/server.ts';
import { apiTokens, auditStore } from '../stores/access-stores.ts';
import { deliveryLog } from '../stores/delivery-log.ts';
import { sendingStore } from '../stores/sending.ts';
import { sendingLog } from '../stores/sending-log.ts';
import { PostgresEventLog, userEventLog } from './event-log.ts';
import { migrate, pendingMigrations } from './migrate.ts';
import { Notifier, PROCESSES } from './notifier.ts';
import { postgresSql } from './sql.ts';
import { indexUsers } from './user-indexes.ts';
import { UserReads } from './user-reads.ts';
import { PostgresUserStore } from './user-store.ts';
import { COMMIT_NOTHING, checkDeliveries } from './write-queue.ts';

/**
 * How long a command waits for a connection, in milliseconds: unlike a client of a service, it does not
 * retry.
 */
const ALONE_WAIT = 10_000;
/** Maximum number of concurrent replays and discards: each uses a connection. */
const MAX_CHANGES = 12;
/**
 * Minimum time between two polls for events of users, in milliseconds; the same as between two notifications.
 */
const FEED_PAUSE = 20;

interface PostgresOptions extends OpenOptions {
  /** The schema to use instead of the search path. */
  readonly schema?: string;
}

/**
 * Opens a PostgreSQL database and migrates it; without `mayMigrate`, an outdated schema is an error. Any
 * number of processes may open the same database. Fails with DatabaseOpenError.
 */
export async function openPostgres(url: string, options: PostgresOptions): Promise<Database> {
  const { observer = unobserved, replica, mayMigrate = true, forService = false, userIndexes } = options;
  const { userEvents, schema } = options;
  const first = async (connection: Connection) => {
    if (mayMigrate) await migrate(connection);
    else requireNothingPending(await pendingMigrations(connection));
    if (userIndexes) await indexUsers(connection, userIndexes);
    if (forService) await connection.run(COMMIT_NOTHING, []);
  };
  await onFirst(url, first, schema);
  if (replica !== undefined) await checkReplica(replica.url);

  const connect = connector(url, { schema });
  const server = forService ? new Server(connect) : new Server(connect, undefined, ALONE_WAIT);
  const notifier = new Notifier(connect);
  await notifier.open();
  const events = userEventLog(server);
  const userFeed = new UserEventFeed(events, FEED_PAUSE);
  const retention = userEvents && new EventRetention(events, userEvents);
  notifier.listen('users', () => userFeed.wake());
  const reads = new UserReads(server, replica);
  const users = new PostgresUserStore({
    server,
    reads,
    observer,
    search: userIndexes?.search ?? 'none',
    onChanged() {
      userFeed.wake();
      notifier.notify('users');
    },
  });
  const sql = postgresSql(server, observer);
  const texts = postgresSql(server, observer, { escapes: true });
  let rows: AsyncDisposable | undefined;
  let changes: OpenChanges | undefined;
  const inbox = postgresInbox(server, notifier, observer);
  return {
    users,
    userFeed,
    userEvents: events,
    inbox,
    deliveries: deliveryLog(texts, {
      maxChanges: MAX_CHANGES,
      awaitEarlier: () => awaitEarlierWriters(server),
      onReplayed: () => notifier.notify('work'),
    }),
    async openRelations(relations) {
      const [
        { openChanges, postgresChanges },
        { postgresRows },
        { changesUsers, serveRelations, withUserIndexes },
        { prepareRelations },
        { announceDeclaration, postgresSession },
      ] = await Promise.all([
        import('../changes/change-log.ts'),
        import('../relations/postgres.ts'),
        import('../relations/row-store.ts'),
        import('../schema/migrate.ts'),
        import('../schema/postgres-session.ts'),
      ]);
      const mode = startMode(options);
      // Before its tables are prepared, so that no migration of other relations can come between.
      await notifier.onConnect((connection) => announceDeclaration(connection, relations));
      const prepare = (connection: Connection) =>
        Promise.resolve(prepareRelations(postgresSession(connection), relations, mode));
      const undeclared = await onFirst(url, prepare, schema);
      const hasChanges = changesUsers(relations);
      changes = openChanges(relations, (byName) => new PostgresEventLog(server, postgresChanges(byName)), {
        pause: FEED_PAUSE,
        limits: userEvents,
      });
      // Changes of users and of relations share their notifications: few processes follow only one of them.
      if (changes !== undefined) notifier.listen('users', () => changes?.feed.wake());
      const opened = postgresRows(withUserIndexes(relations, userIndexes), {
        server,
        reads,
        observer,
        onWritten() {
          if (!hasChanges && changes === undefined) return;
          if (hasChanges) userFeed.wake();
          changes?.feed.wake();
          notifier.notify('users');
        },
      });
      rows = opened;
      return { stores: serveRelations(opened.stores, users), undeclared, changes: changes?.feed };
    },
    sending: sendingStore(texts),
    sendingLog: sendingLog(
      texts,
      () => null,
      () => notifier.notify('work'),
    ),
    apiTokens: apiTokens(sql),
    async processes() {
      const rows = await server.readAlone({ text: PROCESSES }, []);
      return rows.map(([name, since]) => ({ name: String(name), since: Number(since) }));
    },
    audit: auditStore(sql),
    async ping() {
      await server.read({ name: 'ping', text: PING }, []);
    },
    async pingWriter() {
      await Promise.all([users.commitNothing(), checkDeliveries(server)]);
    },
    writeDelay: () => users.writeDelay,
    ...(replica && { replicaReads: () => reads.answered }),
    // Lost connections are reopened, and the server guarantees the durability of its commits.
    failed: new AbortController().signal,
    async [Symbol.asyncDispose]() {
      userFeed[Symbol.dispose]();
      await changes?.[Symbol.asyncDispose]();
      await retention?.[Symbol.asyncDispose]();
      await Promise.all([users, inbox, rows].map((each) => each?.[Symbol.asyncDispose]()));
      await Promise.all([notifier, reads, server].map((each) => each[Symbol.asyncDispose]()));
    },
  };
}
