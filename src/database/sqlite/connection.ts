import { DatabaseSync } from 'node:sqlite';

/** How long a connection waits for another process's lock, in milliseconds. */
const BUSY_TIMEOUT = 5_000;
/** How long to wait before a lock is asked for again, in milliseconds. */
const BUSY_PAUSE = 10;
/** sqlite.org/rescode.html */
const SQLITE_BUSY = 5;

/**
 * Opens a connection that writes: write-ahead log, and a sync at every commit (`synchronous=FULL`;
 * with NORMAL a power cut loses acknowledged rows).
 */
export function openWriteConnection(file: string): DatabaseSync {
  const db = new DatabaseSync(file, { timeout: BUSY_TIMEOUT });
  switchToWriteAheadLog(db);
  // Folding the log back is done between batches (see BatchExecutor.maintain), never inside a commit.
  db.exec('PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0');
  return db;
}

/** SQLite does not wait for a lock here, so this does: two processes may start on a fresh file together. */
function switchToWriteAheadLog(db: DatabaseSync): void {
  const deadline = performance.now() + BUSY_TIMEOUT;
  for (;;) {
    try {
      db.exec('PRAGMA journal_mode=WAL');
      return;
    } catch (error) {
      const { errcode } = error as { readonly errcode?: unknown };
      if (errcode !== SQLITE_BUSY || performance.now() > deadline) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BUSY_PAUSE);
    }
  }
}

/** Opens a connection that only reads; the file must exist. */
export function openReadConnection(file: string): DatabaseSync {
  const db = new DatabaseSync(file, { timeout: BUSY_TIMEOUT, readOnly: true });
  db.exec('PRAGMA cache_size=-8000');
  return db;
}
