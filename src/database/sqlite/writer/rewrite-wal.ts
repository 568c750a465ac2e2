import { closeSync, existsSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';

const CHUNK = 1024 * 1024;

/**
 * Writes the log that an earlier process left over itself, the same bytes in the same places, and syncs it.
 * When a sync failed there, the system has forgotten which bytes the disk lacks and shows them all the same:
 * what is built on them would be lost in a power cut, synced or not (Rebello et al., "Can Applications Recover from
 * fsync Failures?", 2020).
 * Throws what the file system says.
 */
export function rewriteWal(db: DatabaseSync): void {
  const log = `${db.location()}-wal`;
  // The lock that appending to the log takes: nobody changes it meanwhile.
  db.exec('BEGIN IMMEDIATE');
  try {
    if (existsSync(log)) rewrite(log);
  } finally {
    db.exec('ROLLBACK');
  }
}

function rewrite(path: string): void {
  const file = openSync(path, 'r+');
  try {
    const chunk = Buffer.allocUnsafe(CHUNK);
    for (let at = 0, read = 0; ; at += read) {
      read = readSync(file, chunk, 0, CHUNK, at);
      if (read === 0) break;
      for (let done = 0; done < read; ) done += writeSync(file, chunk, done, read - done, at + done);
    }
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
