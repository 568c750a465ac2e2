import { closeSync, fsyncSync, openSync, rmSync, statSync } from 'node:fs';
import { setPriority } from 'node:os';
import { backup, DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { isExpected } from '../../core/errors.ts';
import { createPrivate, openReadConnection } from '../sqlite/connection.ts';
import { BackupError } from './backup-error.ts';
import type { CopiedFile, CopyJob, OnCopy } from './copy.ts';

/** Pages per step: 1 MiB at 4 KiB each. Other processes can use the disk between steps. */
const STEP = 256;
/** Maximum pause between two steps, in milliseconds. */
const MAX_PAUSE = 100;

/**
 * Copies an SQLite file through SQLite's online backup and checks the copy: its integrity, and the row count
 * of each table. The copy is a consistent snapshot, regardless of concurrent writes. Rejects with BackupError
 * or SQLite's error; the file at `to` is then incomplete.
 */
async function copyFile({ from, to, live }: CopyJob, onCopy: OnCopy): Promise<CopiedFile> {
  for (const path of [to, `${to}-wal`, `${to}-shm`, `${to}-journal`]) rmSync(path, { force: true });
  createPrivate(to);
  const rows = await copyPages(from, to, live, (done, total) => onCopy('copy', done, total));
  check(to, rows, (done, total) => onCopy('check', done, total));
  sync(to);
  return { bytes: statSync(to).size, rows };
}

async function copyPages(
  from: string,
  to: string,
  live: boolean,
  onPages: (done: number, total: number) => void,
): Promise<CopiedFile['rows']> {
  using source = openReadConnection(from);
  // Without a snapshot, each concurrent write would restart the copy. The snapshot blocks neither readers nor
  // writers.
  source.exec('BEGIN');
  const rows = countRows(source);
  let began = performance.now();
  await backup(source, to, {
    rate: STEP,
    progress({ totalPages, remainingPages }) {
      onPages(totalPages - remainingPages, totalPages);
      if (live) pause(Math.min(performance.now() - began, MAX_PAUSE));
      began = performance.now();
    },
  });
  return rows;
}

/** Also turns the WAL off, so that the backup is one file. */
function check(file: string, rows: CopiedFile['rows'], onTable: (done: number, total: number) => void): void {
  using db = new DatabaseSync(file);
  db.exec('PRAGMA journal_mode=DELETE');
  const tables = Object.entries(rows);
  onTable(0, tables.length);
  const found = db.prepare('PRAGMA integrity_check(1)').all();
  if (found.length !== 1 || found[0]?.integrity_check !== 'ok') {
    throw new BackupError(
      `The database is damaged: ${String(found[0]?.integrity_check)}. Restore an older backup.`,
    );
  }
  const copied = countRows(db);
  for (const [i, [table, count]] of tables.entries()) {
    if (copied[table] !== count) {
      throw new BackupError(
        `The copy has ${copied[table] ?? 'no'} rows in ${table}, not ${count}. Try again.`,
      );
    }
    onTable(i + 1, tables.length);
  }
}

function countRows(db: DatabaseSync): CopiedFile['rows'] {
  const tables = db
    .prepare(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'`)
    .all();
  return Object.fromEntries(
    tables.map(({ name }) => [
      String(name),
      Number(db.prepare(`SELECT count(*) AS count FROM "${String(name)}"`).get()?.count),
    ]),
  );
}

function sync(file: string): void {
  const fd = openSync(file, 'r+');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Blocks the thread, because the next step starts right after `progress` returns. */
function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

// The thread that copies a database: checking a large one takes seconds, which would block the doors.
const port = parentPort;
if (port === null) throw new Error('copy-thread.ts runs as a worker thread only');

const job = workerData as CopyJob;
// On Linux, the priority applies only to the calling thread.
if (process.platform === 'linux' && job.live) setPriority(10);
try {
  const copied = await copyFile(job, (step, done, total) => port.postMessage({ step, done, total }));
  port.postMessage({ copied });
} catch (error) {
  const message = error instanceof Error ? error.message : String(error);
  port.postMessage({ failed: message, expected: isExpected(error) });
}
port.close();
