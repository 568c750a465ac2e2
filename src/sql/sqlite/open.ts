import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { StoreUnavailableError } from '../../core/errors.ts';
import { UserEventFeed } from '../../relations/events.ts';
import { unobserved } from '../batch-queue.ts';
import { type Database, type OpenOptions, PING, startMode } from '../database.ts';
import { EventRetention } from '../event-retention.ts';
import { requireNothingPending } from '../migration-files.ts';
import { resetTimes, sqliteInbox } from '../sqlite-inbox/inbox.ts';
import { proveWritable, rewriteWal } from '../sqlite-writer/checkpointer.ts';
import { openInlineWriter, openThreadWriter, type Writer } from '../sqlite-writer/writer.ts';
import { apiTokens, auditStore } from '../stores/access-stores.ts';
import { deliveryLog } from '../stores/delivery-log.ts';
import { sendingStore } from '../stores/sending.ts';
import { sendingLog } from '../stores/sending-log.ts';
import { OpenedFiles, openReadConnection, openWriteConnection, readRow } from './connection.ts';
import { SqliteEventLog, SqliteUserEventLog } from './event-log.ts';
import { migrate, openFailure, pendingMigrations, requireAccess } from './migrate.ts';
import { openReader, type Reader } from './reader.ts';
import { lockForService } from './service-lock.ts';
import { sqliteSql } from './sql.ts';
import { TickSnapshot } from './tick-snapshot.ts';
import { indexUsers } from './user-indexes.ts';
import { SqliteUserStore } from './user-store.ts';
import { SQLITE_WRITES } from './writes.ts';

/** Minimum time between two polls for events of users, in milliseconds, so that several commits share one. */
const FEED_PAUSE = 5;

/**
 * Opens an SQLite database and migrates it; without `mayMigrate`, an outdated schema is an error. `file` is a
 * path, or `:memory:`, which is always migrated. Throws DatabaseOpenError.
 */
export function openSqlite(file: string, options: OpenOptions = {}): Database {
  const {
    observer = unobserved,
    mayMigrate = true,
    forService = false,
    readThread = true,
    userIndexes,
    userEvents,
    onHeldWal,
  } = options;
  const resources = new AsyncDisposableStack();
  const failed = new AbortController();
  const onFatal = (error: Error) => failed.abort(error);
  let reads: DatabaseSync;
  let writer: Writer;
  let snapshot: TickSnapshot | undefined;
  let files: OpenedFiles | undefined;
  let reader: Reader | undefined;
  let closed: Promise<void> | undefined;
  try {
    if (file === ':memory:') {
      reads = resources.use(new DatabaseSync(file));
      migrate(reads);
      if (userIndexes) indexUsers(reads, userIndexes);
      writer = resources.use(openInlineWriter(reads, SQLITE_WRITES, onFatal, observer));
    } else {
      if (forService) requireAccess(file);
      if (!mayMigrate) requireNothingPending(pendingInFile(file));
      // Closed after the others are open, because closing the last connection deletes the WAL.
      using migrating = openWriteConnection(file);
      // Locked before the schema can change under a running service. A database in memory has no location.
      const path = migrating.location();
      if (path && forService) resources.use(lockForService(path));
      rewriteWal(migrating);
      if (mayMigrate) migrate(migrating);
      if (userIndexes) indexUsers(migrating, userIndexes);
      if (path && forService) {
        proveWritable(migrating);
        resetTimes(migrating, Date.now());
      }
      writer = resources.use(
        openThreadWriter(file, { onFatal, observer, onBatchEnd: () => snapshot?.refresh(), onHeldWal }),
      );
      // Closes before the writing connection, which then checkpoints the WAL.
      reads = resources.use(openReadConnection(file));
      snapshot = new TickSnapshot(reads, writer.waitsForReads);
      if (readThread) reader = resources.use(openReader(file));
      if (path) files = new OpenedFiles(path);
    }
    const sql = sqliteSql({ reads, writes: writer.queue });
    const inbox = sqliteInbox(reads, writer, observer);
    const ping = reads.prepare(PING);
    const events = new SqliteUserEventLog(reads, writer.queue);
    const userFeed = resources.use(new UserEventFeed(events, FEED_PAUSE));
    if (userEvents) resources.use(new EventRetention(events, userEvents));
    const users = new SqliteUserStore({
      reads,
      writes: writer.queue,
      observer,
      snapshot,
      reader,
      search: userIndexes?.search ?? 'none',
      onChanged: () => userFeed.wake(),
    });
    return {
      users,
      userFeed,
      inbox,
      userEvents: events,
      deliveries: deliveryLog(sqliteSql({ reads, writes: writer.queue, reader }), {
        // Concurrent changes share one commit.
        maxChanges: Number.POSITIVE_INFINITY,
      }),
      async openRelations(relations) {
        const [
          { openChanges, sqliteChanges },
          { sqliteRows },
          { changesUsers, serveRelations, withUserIndexes },
          { planRelations, prepareRelations },
          { sqliteSession },
        ] = await Promise.all([
          import('../changes/change-log.ts'),
          import('../relations/sqlite.ts'),
          import('../relations/row-store.ts'),
          import('../schema/migrate.ts'),
          import('../schema/sqlite-session.ts'),
        ]);
        const prepare = (db: DatabaseSync) =>
          prepareRelations(sqliteSession(db), relations, startMode(options));
        const undeclared = await orOpenFailure(file, async () => {
          if (file === ':memory:') return prepare(reads);
          const plan = await planRelations(sqliteSession(reads), relations);
          if (plan.steps.length === 0) return plan.undeclared;
          using db = openWriteConnection(file);
          return await prepare(db);
        });
        const changes = openChanges(
          relations,
          (byName) => new SqliteEventLog({ ...sqliteChanges(byName), reads, writes: writer.queue }),
          {
            pause: FEED_PAUSE,
            limits: userEvents,
          },
        );
        if (changes !== undefined) resources.use(changes);
        const hasChanges = changesUsers(relations);
        const stores = sqliteRows(withUserIndexes(relations, userIndexes), {
          reads,
          writes: writer.queue,
          snapshot,
          reader,
          onWritten() {
            if (hasChanges) userFeed.wake();
            changes?.feed.wake();
          },
        });
        return { stores: serveRelations(stores, users), undeclared, changes: changes?.feed };
      },
      sending: sendingStore(sql),
      sendingLog: sendingLog(sqliteSql({ reads, writes: writer.queue, reader }), () => Number(inbox.clock())),
      apiTokens: apiTokens(sql),
      audit: auditStore(sql),
      ping() {
        failed.signal.throwIfAborted();
        readRow(ping);
        const lost = files?.look().lost;
        if (lost !== undefined) throw new StoreUnavailableError(lost);
      },
      async pingWriter() {
        await writer.queue.submit([]);
      },
      writeDelay: () => writer.queue.delay,
      walBytes: () => files?.look().walBytes ?? 0,
      failed: failed.signal,
      [Symbol.asyncDispose]() {
        closed ??= resources.disposeAsync();
        return closed;
      },
    };
  } catch (cause) {
    void resources.disposeAsync();
    throw openFailure(file, cause);
  }
}

async function orOpenFailure<T>(file: string, open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (cause) {
    throw openFailure(file, cause);
  }
}

/** Migrates a file; returns the applied migrations. */
export function migrateFile(file: string, folder?: URL): readonly string[] {
  using db = openWriteConnection(file);
  rewriteWal(db);
  return migrate(db, { folder });
}

/** The pending migrations of a file; does not create the file. */
export function pendingInFile(file: string, folder?: URL): readonly string[] {
  using db = openToLook(file);
  return pendingMigrations(db, folder);
}

/** A connection to look at the tables of a file, or to change them. */
export function openForSchema(file: string, use: 'look' | 'migrate'): DatabaseSync {
  return use === 'look' ? openToLook(file) : openWriteConnection(file);
}

/** A file that does not exist is an empty database. */
function openToLook(file: string): DatabaseSync {
  const exists = file.startsWith('file:') || existsSync(file);
  return exists ? openReadConnection(file) : new DatabaseSync(':memory:');
}
