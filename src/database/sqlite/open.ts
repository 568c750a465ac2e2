import { DatabaseSync } from 'node:sqlite';
import { LocalUserFeed } from '../../users/local-user-feed.ts';
import type { Database } from '../database.ts';
import { requireNothingPending } from '../migration-files.ts';
import { unobserved } from '../observer.ts';
import type { OpenOptions } from '../open-options.ts';
import { openReadConnection, openWriteConnection } from './connection.ts';
import { SqliteDeliveryLog } from './delivery-log.ts';
import { SqliteInbox } from './inbox.ts';
import { migrate } from './migrate.ts';
import { pendingIn } from './migrate-file.ts';
import { openFailure } from './open-failure.ts';
import { readRow } from './read-row.ts';
import { TurnSnapshot } from './turn-snapshot.ts';
import { SqliteUserStore } from './user-store.ts';
import { rewriteWal } from './writer/rewrite-wal.ts';
import { openInlineWriter, openThreadWriter, type Writer } from './writer/writer.ts';

/**
 * Opens an SQLite database, up to date and ready; without `mayMigrate` one whose schema is up to date already.
 * `file` is a path, or `:memory:`, which is always migrated, because nobody else could.
 * Throws DatabaseOpenError.
 */
export function openSqlite(
  file: string,
  { observer = unobserved, mayMigrate = true }: OpenOptions = {},
): Database {
  const failed = new AbortController();
  const onFatal = (error: Error) => failed.abort(error);
  let reads: DatabaseSync;
  let writer: Writer;
  let snapshot: TurnSnapshot | undefined;
  try {
    if (file === ':memory:') {
      reads = new DatabaseSync(file);
      migrate(reads);
      writer = openInlineWriter(reads, onFatal, observer);
    } else {
      if (!mayMigrate) requireNothingPending(pendingIn(file));
      // Closed when the writer has its own: the last connection to close would delete the log.
      using migrating = openWriteConnection(file);
      rewriteWal(migrating);
      if (mayMigrate) migrate(migrating);
      reads = openReadConnection(file);
      snapshot = new TurnSnapshot(reads);
      writer = openThreadWriter(file, { onFatal, observer, onBatchEnd: snapshot.refresh });
    }
  } catch (cause) {
    throw openFailure(file, cause);
  }

  let closed: Promise<void> | undefined;
  const userFeed = new LocalUserFeed();
  const ping = reads.prepare('SELECT 1 FROM users LIMIT 1');
  return {
    users: new SqliteUserStore({ reads, writes: writer.queue, observer, feed: userFeed, snapshot }),
    userFeed,
    inbox: new SqliteInbox(reads, writer.queue, observer),
    deliveries: new SqliteDeliveryLog(reads, writer.queue),
    ping() {
      failed.signal.throwIfAborted();
      readRow(ping);
    },
    async pingWriter() {
      await writer.queue.submit([]);
    },
    failed: failed.signal,
    [Symbol.asyncDispose]() {
      closed ??= close();
      return closed;
    },
  };

  async function close(): Promise<void> {
    // The connection that writes closes last and folds the log into the file.
    if (file !== ':memory:') reads.close();
    await writer[Symbol.asyncDispose]();
    if (file === ':memory:') reads.close();
  }
}
