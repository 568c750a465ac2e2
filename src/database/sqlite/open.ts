import { DatabaseSync } from 'node:sqlite';
import { StoreUnavailableError } from '../../core/store-errors.ts';
import { UserEventFeed } from '../../users/user-event-feed.ts';
import { type Database, PING } from '../database.ts';
import { EventRetention } from '../event-retention.ts';
import { requireNothingPending } from '../migration-files.ts';
import { unobserved } from '../observer.ts';
import type { OpenOptions } from '../open-options.ts';
import { sqliteApiTokens } from './api-tokens.ts';
import { sqliteAuditStore } from './audit-store.ts';
import { openReadConnection, openWriteConnection } from './connection.ts';
import { resetTimes } from './inbox/after-restart.ts';
import { SqliteDeliveryLog } from './inbox/delivery-log.ts';
import { sqliteInbox } from './inbox/inbox.ts';
import { migrate } from './migrate.ts';
import { pendingInFile } from './migrate-file.ts';
import { openFailure, requireAccess } from './open-failure.ts';
import { OpenedFiles } from './opened-files.ts';
import { readRow } from './read-row.ts';
import { openReader, type Reader } from './reader/reader.ts';
import { lockForService } from './service-lock.ts';
import { TickSnapshot } from './tick-snapshot.ts';
import { SqliteUserEventLog } from './user-event-log.ts';
import { indexUsers } from './user-indexes.ts';
import { SqliteUserStore } from './user-store.ts';
import { proveWritable } from './writer/prove-writable.ts';
import { rewriteWal } from './writer/rewrite-wal.ts';
import { openInlineWriter, openThreadWriter, type Writer } from './writer/writer.ts';

/** Minimum time between two polls for events of users, in milliseconds: a few commits share one. */
const FEED_PAUSE = 5;

/**
 * Opens an SQLite database and migrates it; without `mayMigrate` an outdated schema is an error. `file` is a path, or
 * `:memory:`, which is always migrated. Throws DatabaseOpenError.
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
      writer = resources.use(openInlineWriter(reads, onFatal, observer));
    } else {
      if (forService) requireAccess(file);
      if (!mayMigrate) requireNothingPending(pendingInFile(file));
      // Closed after the others have been opened: the last connection to close would delete the WAL.
      using migrating = openWriteConnection(file);
      // Before the schema changes under a service that runs. A database in memory has no location.
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
      // Closes before the writing connection, which checkpoints the WAL.
      reads = resources.use(openReadConnection(file));
      snapshot = new TickSnapshot(reads, writer.waitsForReads);
      if (readThread) reader = resources.use(openReader(file));
      if (path) files = new OpenedFiles(path);
    }
    const ping = reads.prepare(PING);
    const events = new SqliteUserEventLog(reads, writer.queue);
    const userFeed = resources.use(new UserEventFeed(events, FEED_PAUSE));
    if (userEvents) resources.use(new EventRetention(events, userEvents));
    return {
      users: new SqliteUserStore({
        reads,
        writes: writer.queue,
        observer,
        snapshot,
        reader,
        search: userIndexes?.search ?? 'none',
        onChanged: () => userFeed.wake(),
      }),
      userFeed,
      inbox: sqliteInbox(reads, writer, observer),
      userEvents: events,
      deliveries: new SqliteDeliveryLog(reads, writer.queue, reader),
      apiTokens: sqliteApiTokens(reads, writer.queue),
      audit: sqliteAuditStore(reads, writer.queue),
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
