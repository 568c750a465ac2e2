import { DatabaseSync } from 'node:sqlite';

/** sqlite.org/rescode.html */
const SQLITE_BUSY = 5;
/** How long to wait for others to go, and before they are asked for again, in milliseconds. */
const PATIENCE = 2_000;
const PAUSE = 20;

/**
 * Opens a file for one connection alone, which syncs at every commit: while any other one has it open this fails, and
 * while this one has it open every other one does. Returns undefined when others do not go.
 */
export function openExclusively(file: string): DatabaseSync | undefined {
  const deadline = performance.now() + PATIENCE;
  for (;;) {
    const db = new DatabaseSync(file);
    try {
      // A connection to a file with a write-ahead log shares a lock on it for as long as it is open.
      db.exec('PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; BEGIN EXCLUSIVE; COMMIT');
      db.exec('PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0; PRAGMA foreign_keys=ON');
      return db;
    } catch (error) {
      db.close();
      if ((error as { readonly errcode?: unknown }).errcode !== SQLITE_BUSY) throw error;
      if (performance.now() > deadline) return undefined;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE);
    }
  }
}
