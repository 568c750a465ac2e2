import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { DatabaseSync } from 'node:sqlite';
import { DatabaseOpenError } from '../../core/errors.ts';
import { oneLine } from '../../core/text.ts';

/** The files of a service beside its database: the lock, and a note about its holder. */
export function serviceFiles(file: string): readonly [lock: string, holder: string] {
  return [`${file}-service`, `${file}-service.json`];
}

/**
 * The locks of this process, by path. Closing a file releases all locks that a process has on it, so none is
 * opened twice. The map also keeps the locks from being garbage-collected, which would release them.
 */
const held = new Map<string, Disposable>();

/**
 * Locks a database for its only service until the lock is disposed of or the process ends. `file` is its path
 * without symbolic links. Throws DatabaseOpenError, which names the holder, if another service has the lock.
 *
 * The lock is SQLite's own, on an empty database beside the file: the operating system releases it with the
 * process, and it works between containers that share a volume. It does not affect connections that do not
 * request it.
 */
export function lockForService(file: string): Disposable {
  const [path, note] = serviceFiles(file);
  if (held.has(path)) throw new DatabaseOpenError(inUse(note));
  for (;;) {
    using opened = new DisposableStack();
    // While it is open, no other file can get its inode number.
    const fd = opened.adopt(openSync(path, 'a', 0o600), closeSync);
    opened.use(lockOn(path, note));
    // An ending service removes the file, and a lock on a removed file excludes no one.
    const { ino } = fstatSync(fd);
    if (inodeOf(path) !== ino) continue;
    writeNote(note);
    for (const each of [path, note]) giveToOwner(each, file);
    opened.defer(() => {
      // If the file was removed, another service may have created its own at the path.
      if (inodeOf(path) === ino) for (const each of [note, path]) rmSync(each, { force: true });
      held.delete(path);
    });
    const lock = opened.move();
    held.set(path, lock);
    return lock;
  }
}

/**
 * Whether a service of another process runs on a database, as far as this process can tell. `file` is its
 * path without symbolic links.
 */
export function isServed(file: string): boolean {
  const [path, note] = serviceFiles(file);
  if (held.has(path) || !existsSync(path)) return false;
  try {
    lockOn(path, note).close();
    return false;
  } catch {
    return true;
  }
}

/** One sentence about the service that runs on a database. */
export function runningService(file: string): string {
  return `A service runs on ${file}${holder(serviceFiles(file)[1])}.`;
}

/** Holds the lock by an open transaction on an empty database, which writes nothing. */
function lockOn(path: string, note: string): DatabaseSync {
  const db = new DatabaseSync(path);
  try {
    db.exec('PRAGMA journal_mode=MEMORY; BEGIN IMMEDIATE');
    return db;
  } catch (error) {
    db.close();
    throw isBusy(error) ? new DatabaseOpenError(inUse(note)) : error;
  }
}

/**
 * Gives a file to the owner of the database if another user has created it, so that a stale one does not
 * block a start.
 */
function giveToOwner(path: string, file: string): void {
  const { uid, gid, mode } = statSync(file);
  try {
    if (process.geteuid?.() === 0) chownSync(path, uid, gid);
    chmodSync(path, mode);
  } catch {
    // The file belongs to another user, who has done this already.
  }
}

function inodeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.ino;
}

function writeNote(path: string): void {
  const startedAt = new Date(performance.timeOrigin).toISOString();
  const note = { pid: process.pid, host: hostname(), startedAt };
  writeFileSync(path, `${JSON.stringify(note)}\n`, { mode: 0o600 });
}

function inUse(note: string): string {
  return `another service runs on it${holder(note)}. Stop that one first, or give this one another database; several services can share one on PostgreSQL.`;
}

/** The holder of the lock, as far as its note tells. */
function holder(note: string): string {
  try {
    const { pid, host, startedAt } = JSON.parse(readFileSync(note, 'utf8'));
    return `: process ${Number(pid)} on ${oneLine(String(host))}, started at ${new Date(startedAt).toISOString()}`;
  } catch {
    return '';
  }
}

/** sqlite.org/rescode.html */
const SQLITE_BUSY = 5;
/** Delay before retrying a lock, in milliseconds. */
const PAUSE = 10;

/** Whether another connection holds the lock. */
export function isBusy(error: unknown): boolean {
  return (error as { readonly errcode?: unknown }).errcode === SQLITE_BUSY;
}

/**
 * Retries `work` while the database is busy, for statements that ignore SQLite's busy timeout. Rethrows the
 * last error.
 */
export function retryWhileBusy<T>(timeoutMs: number, work: () => T): T {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE);
    }
  }
}
