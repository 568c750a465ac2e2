import { DatabaseSync } from 'node:sqlite';
import { retryWhileBusy } from './busy.ts';

/** How long to wait for others to go, in milliseconds. */
const PATIENCE = 2_000;

/**
 * Opens a file for one connection alone, which syncs at every commit: while any other one has it open this fails, and
 * while this one has it open every other one does. Throws what SQLite says, which is that it is busy when others do
 * not go.
 */
export function openExclusively(file: string): DatabaseSync {
  return retryWhileBusy(PATIENCE, () => {
    const db = new DatabaseSync(file);
    try {
      // A connection to a file with a write-ahead log shares a lock on it for as long as it is open.
      db.exec('PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; BEGIN EXCLUSIVE; COMMIT');
      db.exec('PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0; PRAGMA foreign_keys=ON');
      return db;
    } catch (error) {
      db.close();
      throw error;
    }
  });
}
