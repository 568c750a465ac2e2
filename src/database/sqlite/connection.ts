import { DatabaseSync } from 'node:sqlite';
import { retryWhileBusy } from './busy.ts';
import { createPrivate } from './private-files.ts';

/** How long a connection waits for the lock of another process, in milliseconds. */
const BUSY_TIMEOUT = 5_000;
/** How long an exclusive connection waits for other ones to close, in milliseconds. */
const EXCLUSIVE_TIMEOUT = 2_000;

/** Size of the WAL beyond which it is checkpointed, and to which the commit that starts it anew truncates it, in bytes. */
export const WAL_LIMIT = 4 * 1024 * 1024;

/**
 * Every commit fsyncs the WAL (`synchronous=FULL`; with NORMAL a power cut loses acknowledged rows). No commit
 * checkpoints it: that happens between batches, see Checkpointer.
 */
const DURABLE = `PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0; PRAGMA journal_size_limit=${WAL_LIMIT}`;

/** Opens a connection that writes, in WAL mode; creates the file if need be. */
export function openWriteConnection(file: string): DatabaseSync {
  createPrivate(file);
  return prepared(new DatabaseSync(file, { timeout: BUSY_TIMEOUT }), (db) => {
    // This pragma ignores the busy timeout, and two processes may start on a new file together.
    retryWhileBusy(BUSY_TIMEOUT, () => db.exec('PRAGMA journal_mode=WAL'));
    db.exec(DURABLE);
  });
}

/** Opens a connection that only reads; the file must exist. */
export function openReadConnection(file: string): DatabaseSync {
  const db = new DatabaseSync(file, { timeout: BUSY_TIMEOUT, readOnly: true });
  return prepared(db, () => db.exec('PRAGMA cache_size=-8000'));
}

/**
 * Opens a connection that excludes all others: it fails while another one is open, and others fail while it is. It
 * creates the file if need be. Throws SQLite's error, SQLITE_BUSY while others stay.
 */
export function openExclusiveConnection(file: string): DatabaseSync {
  createPrivate(file);
  return retryWhileBusy(EXCLUSIVE_TIMEOUT, () =>
    prepared(new DatabaseSync(file), (db) => {
      // In WAL mode every open connection holds a shared lock on the file.
      db.exec('PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; BEGIN EXCLUSIVE; COMMIT');
      db.exec(`${DURABLE}; PRAGMA foreign_keys=ON`);
    }),
  );
}

/** Prepares a connection; closes it when that fails. */
function prepared(db: DatabaseSync, prepare: (db: DatabaseSync) => void): DatabaseSync {
  try {
    prepare(db);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}
