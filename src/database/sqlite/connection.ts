import { DatabaseSync } from 'node:sqlite';
import { retryWhileBusy } from './busy.ts';

/** How long a connection waits for another process's lock, in milliseconds. */
const BUSY_TIMEOUT = 5_000;

/**
 * Opens a connection that writes: write-ahead log, and a sync at every commit (`synchronous=FULL`;
 * with NORMAL a power cut loses acknowledged rows).
 */
export function openWriteConnection(file: string): DatabaseSync {
  const db = new DatabaseSync(file, { timeout: BUSY_TIMEOUT });
  // SQLite does not wait for a lock here, and two processes may start on a fresh file together.
  retryWhileBusy(BUSY_TIMEOUT, () => db.exec('PRAGMA journal_mode=WAL'));
  // Folding the log back is done between batches (see BatchExecutor.maintain), never inside a commit.
  db.exec('PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0');
  return db;
}

/** Opens a connection that only reads; the file must exist. */
export function openReadConnection(file: string): DatabaseSync {
  const db = new DatabaseSync(file, { timeout: BUSY_TIMEOUT, readOnly: true });
  db.exec('PRAGMA cache_size=-8000');
  return db;
}
