import { closeSync, existsSync, openSync, readSync, writeSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';

const CHUNK = 1024 * 1024;

/**
 * Rewrites the WAL of an earlier process in place, byte for byte, by writes that are synced. After a failed fsync the kernel marks the
 * pages clean although the disk lacks them, so a later fsync would not write them and a power cut would lose them
 * (Rebello et al., "Can Applications Recover from fsync Failures?", 2020). Throws the error of the file system.
 */
export function rewriteWal(db: DatabaseSync): void {
  const wal = `${db.location()}-wal`;
  // The write lock, so that no other process appends to the WAL.
  db.exec('BEGIN IMMEDIATE');
  try {
    if (existsSync(wal)) rewrite(wal);
  } finally {
    db.exec('ROLLBACK');
  }
}

function rewrite(path: string): void {
  // Synchronous writes: Node's permission model has no fsync.
  const file = openSync(path, 'rs+');
  try {
    const chunk = Buffer.allocUnsafe(CHUNK);
    for (let at = 0, read = 0; ; at += read) {
      read = readSync(file, chunk, 0, CHUNK, at);
      if (read === 0) break;
      for (let done = 0; done < read; ) done += writeSync(file, chunk, done, read - done, at + done);
    }
  } finally {
    closeSync(file);
  }
}
