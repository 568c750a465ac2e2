import { closeSync, existsSync, openSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync, type SQLInputValue, type SQLOutputValue, type StatementSync } from 'node:sqlite';
import { StoreUnavailableError } from '../../core/errors.ts';
import { pathOf } from './migrate.ts';
import { retryWhileBusy } from './service-lock.ts';

/** How long a connection waits for a lock of another process, in milliseconds. */
const BUSY_TIMEOUT = 5_000;
/** How long an exclusive connection waits for others to close, in milliseconds. */
const EXCLUSIVE_TIMEOUT = 2_000;

/**
 * The WAL is checkpointed when it exceeds this size in bytes. The commit that begins it again truncates the file to
 * this size, or to what a Checkpointer keeps.
 */
export const WAL_LIMIT = 4 * 1024 * 1024;

/**
 * Every commit fsyncs the WAL (`synchronous=FULL`; with NORMAL, a power failure loses acknowledged rows).
 * Commits do not checkpoint: that happens between batches, see Checkpointer.
 */
const DURABLE = `PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0; PRAGMA journal_size_limit=${WAL_LIMIT}`;

/** Opens a writing connection in WAL mode; creates the file if necessary. */
export function openWriteConnection(file: string): DatabaseSync {
  createPrivate(file);
  return prepared(new DatabaseSync(file, { timeout: BUSY_TIMEOUT }), (db) => {
    // This pragma ignores the busy timeout, and two processes may open a new file at the same time.
    retryWhileBusy(BUSY_TIMEOUT, () => db.exec('PRAGMA journal_mode=WAL'));
    // A batch of an import changes more pages than SQLite's default of 2 MB holds.
    db.exec(`${DURABLE}; PRAGMA cache_size=-8000`);
  });
}

/** Opens a read-only connection; the file must exist. */
export function openReadConnection(file: string): DatabaseSync {
  const db = new DatabaseSync(file, { timeout: BUSY_TIMEOUT, readOnly: true });
  return prepared(db, () => db.exec('PRAGMA cache_size=-8000'));
}

/**
 * Opens a connection that excludes all others: it fails while another is open, and others fail while it is
 * open. Creates the file if necessary. Throws SQLite's error, SQLITE_BUSY if others remain open.
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

/** Prepares a connection; closes it on failure. */
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

/** Each combines the overloads of a method in one signature. */
interface Bindable {
  get(...values: readonly Bound[]): unknown;
  all(...values: readonly Bound[]): unknown;
  iterate(...values: readonly Bound[]): unknown;
}

/**
 * Runs a statement that returns at most one row; `T` is the shape of its columns. Throws
 * StoreUnavailableError.
 */
export function readRow<T>(statement: StatementSync, ...values: readonly Bound[]): T | undefined {
  try {
    return (statement as Bindable).get(...values) as T | undefined;
  } catch (cause) {
    throw failed(cause);
  }
}

/**
 * Runs a statement that returns any number of rows; `T` is the shape of their columns. Throws
 * StoreUnavailableError.
 */
export function readRows<T>(statement: StatementSync, ...values: readonly Bound[]): readonly T[] {
  try {
    return (statement as Bindable).all(...values) as T[];
  } catch (cause) {
    throw failed(cause);
  }
}

/** Reads the rows of a statement one by one, while `use` takes them. Throws StoreUnavailableError. */
export function readEach<T>(
  statement: StatementSync,
  values: readonly Bound[],
  use: (rows: Iterable<readonly unknown[]>) => T,
): T {
  try {
    return use((statement as Bindable).iterate(...values) as Iterable<readonly unknown[]>);
  } catch (cause) {
    throw failed(cause);
  }
}

/** Maximum number of statements that a connection keeps prepared. */
const MAX_STATEMENTS = 100;

/** The statements of a connection, prepared on first use. Their rows are arrays of columns. */
export class PreparedStatements {
  readonly #db: DatabaseSync;
  readonly #prepared = new Map<string, StatementSync>();

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /** Runs a statement; throws SQLite's error. */
  run(text: string, values: readonly Bound[]): readonly (readonly SQLOutputValue[])[] {
    return (this.#statement(text) as Bindable).all(...values) as SQLOutputValue[][];
  }

  /** Runs a statement; throws StoreUnavailableError. */
  read(text: string, values: readonly Bound[]): readonly (readonly SQLOutputValue[])[] {
    try {
      return this.run(text, values);
    } catch (cause) {
      throw failed(cause);
    }
  }

  /** Runs a statement row by row; throws SQLite's error. */
  iterate(text: string, values: readonly Bound[]): Iterable<readonly SQLOutputValue[]> {
    return (this.#statement(text) as Bindable).iterate(...values) as Iterable<SQLOutputValue[]>;
  }

  #statement(text: string): StatementSync {
    const known = this.#prepared.get(text);
    if (known !== undefined) return known;
    if (this.#prepared.size === MAX_STATEMENTS) this.#prepared.clear();
    const made = this.#db.prepare(text);
    made.setReturnArrays(true);
    this.#prepared.set(text, made);
    return made;
  }
}

function failed(cause: unknown): StoreUnavailableError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new StoreUnavailableError(`The read failed: ${reason}`, { cause });
}

/** The mode of files that contain data or give access to them: owner only. */
const PRIVATE = 0o600;
/** The permission bits of users other than owner and group. */
const OTHERS = 0o007;
/** Read and write for owner and group. */
const WITHOUT_OTHERS = 0o660;

/**
 * Creates the file of a new database before SQLite does, which would make it readable to all users that the
 * umask allows. The WAL and its index get the same mode. `file` is a path or a URL, as SQLite accepts it.
 * Throws file system errors.
 */
export function createPrivate(file: string): void {
  if (!isCreated(file)) return;
  const path = pathOf(file);
  // Not for an existing file: closing it would release the locks that this process has on it.
  if (!existsSync(path)) closeSync(openSync(path, 'a', PRIVATE));
}

/** Whether SQLite would create a file of this name. */
function isCreated(file: string): boolean {
  if (!file.startsWith('file:')) return file !== '' && file !== ':memory:';
  const { searchParams, pathname } = new URL(file, 'file:///');
  const mode = searchParams.get('mode');
  return (mode === null || mode === 'rwc') && !pathname.endsWith('/:memory:');
}

/** The mode of a copy of a file: the same for owner and group, none for others. */
export function modeOfCopy(path: string): number {
  return statSync(path).mode & WITHOUT_OTHERS;
}

/**
 * Which of a database's files other users of this machine can access: the file, the WAL and its index, files
 * kept by restores, and `more`. Access by the group may be intended, so it is not reported.
 */
export function exposedFiles(file: string, more: readonly string[]): readonly string[] {
  if (process.platform === 'win32') return [];
  const folder = dirname(file);
  const kept = readdirSync(folder).filter((name) => name.startsWith(`${basename(file)}.before-restore-`));
  const files = [file, `${file}-wal`, `${file}-shm`, ...kept.map((name) => join(folder, name)), ...more];
  return files.filter((path) => ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & OTHERS) !== 0);
}

/** Identifies a file regardless of its name. */
interface Identity {
  readonly dev: number;
  readonly ino: number;
}

/** The state of an open database's files. */
export interface Look {
  /** The problem and its remedy if one of the files is no longer at its path; undefined otherwise. */
  readonly lost: string | undefined;
  /** Size of the WAL in bytes. */
  readonly walBytes: number;
}

/**
 * The file of an open database and its WAL, as found after opening. SQLite keeps using files that were
 * deleted or replaced, and what it writes there is lost when the process ends.
 */
export class OpenedFiles {
  readonly #files: readonly (readonly [path: string, opened: Identity])[];

  /** `path` is the path of an open database that has been read, so that its WAL exists. */
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
      // The WAL is the last entry.
      walBytes = found?.size ?? 0;
      if (found !== undefined && found.ino === opened.ino && found.dev === opened.dev) continue;
      const what = found === undefined ? 'was deleted or moved' : 'was replaced by another file';
      const lost = `${path} ${what} while the database is open, so nothing more is stored. Put the same file back, or stop the service and start it on the file that is there; docs/SCALING.md says how to save a deleted one.`;
      return { lost, walBytes: 0 };
    }
    return { lost: undefined, walBytes };
  }
}
