import { closeSync, existsSync, openSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { StoreUnavailableError } from '../../core/errors.ts';
import { pathOf } from './migrate.ts';
import { retryWhileBusy } from './service-lock.ts';

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

/** A value for a `?`, or values for `:names`. */
type Bound = SQLInputValue | Readonly<Record<string, SQLInputValue>>;

/** The overloads of `get` and `all` as one signature each. */
interface Bindable {
  get(...values: readonly Bound[]): unknown;
  all(...values: readonly Bound[]): unknown;
}

/** Runs a statement that returns at most one row; `T` is the shape of its columns. Throws StoreUnavailableError. */
export function readRow<T>(statement: StatementSync, ...values: readonly Bound[]): T | undefined {
  try {
    return (statement as Bindable).get(...values) as T | undefined;
  } catch (cause) {
    throw failed(cause);
  }
}

/** Runs a statement that returns any number of rows; `T` is the shape of their columns. Throws StoreUnavailableError. */
export function readRows<T>(statement: StatementSync, ...values: readonly Bound[]): readonly T[] {
  try {
    return (statement as Bindable).all(...values) as T[];
  } catch (cause) {
    throw failed(cause);
  }
}

function failed(cause: unknown): StoreUnavailableError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new StoreUnavailableError(`The read failed: ${reason}`, { cause });
}

/** The mode of files that hold data or lead to them: their owner's alone. */
const PRIVATE = 0o600;
/** What others than the owner and the group may do. */
const OTHERS = 0o007;
/** Read and write, for the owner and the group. */
const WITHOUT_OTHERS = 0o660;

/**
 * Creates the file of a database where there is none, before SQLite opens it: SQLite would let everybody read it whom the
 * umask lets. The WAL and its index get the mode of the file. `file` is a path or a URL, as SQLite takes it. Throws the
 * error of the file system.
 */
export function createPrivate(file: string): void {
  if (!isCreated(file)) return;
  const path = pathOf(file);
  // Closing a file that is there would give back the locks that this process has on it.
  if (!existsSync(path)) closeSync(openSync(path, 'a', PRIVATE));
}

/** Whether SQLite would create a file of this name. */
function isCreated(file: string): boolean {
  if (!file.startsWith('file:')) return file !== '' && file !== ':memory:';
  const { searchParams, pathname } = new URL(file, 'file:///');
  const mode = searchParams.get('mode');
  return (mode === null || mode === 'rwc') && !pathname.endsWith('/:memory:');
}

/** The mode of a copy of a file: for whom the file is, but never for others. */
export function modeOfCopy(path: string): number {
  return statSync(path).mode & WITHOUT_OTHERS;
}

/**
 * Which of a database's files others on this machine may use: the file, the WAL and its index, what restores have kept,
 * and `more`. A group may be there on purpose.
 */
export function exposedFiles(file: string, more: readonly string[]): readonly string[] {
  if (process.platform === 'win32') return [];
  const folder = dirname(file);
  const kept = readdirSync(folder).filter((name) => name.startsWith(`${basename(file)}.before-restore-`));
  const files = [file, `${file}-wal`, `${file}-shm`, ...kept.map((name) => join(folder, name)), ...more];
  return files.filter((path) => ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & OTHERS) !== 0);
}

/** A file by what it is, whatever its name. */
interface Identity {
  readonly dev: number;
  readonly ino: number;
}

/** How the files are. */
export interface Look {
  /** What is wrong and what to do once one of them is no longer at its path; undefined while both are. */
  readonly lost: string | undefined;
  /** Size of the WAL. */
  readonly walBytes: number;
}

/**
 * The file of an open database and its WAL, as they were found after the opening. SQLite goes on in files that were
 * deleted or replaced, and what it writes there is lost with the process.
 */
export class OpenedFiles {
  readonly #files: readonly (readonly [path: string, opened: Identity])[];

  /** `path` is that of the database, which is open and was read from, so that there is a WAL. */
  constructor(path: string) {
    this.#files = [path, `${path}-wal`].flatMap((each) => {
      const opened = statSync(each, { throwIfNoEntry: false });
      return opened === undefined ? [] : [[each, opened] as const];
    });
  }

  look(): Look {
    let walBytes = 0;
    for (const [path, opened] of this.#files) {
      const found = statSync(path, { throwIfNoEntry: false });
      // The WAL is the last one.
      walBytes = found?.size ?? 0;
      if (found !== undefined && found.ino === opened.ino && found.dev === opened.dev) continue;
      const what = found === undefined ? 'was deleted or moved' : 'was replaced by another file';
      const lost = `${path} ${what} while the database is open, so nothing more is stored. Put the same file back, or stop the service and start it on the file that is there; docs/SCALING.md says how to save a deleted one.`;
      return { lost, walBytes: 0 };
    }
    return { lost: undefined, walBytes };
  }
}
