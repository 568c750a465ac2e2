import { closeSync, existsSync, openSync, readSync, statSync, writeSync } from 'node:fs';
import { extname } from 'node:path';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { Worker } from 'node:worker_threads';
import { PACKAGE_ROOT, threadEnvironment } from '../../core/package-root.ts';
import { WAL_LIMIT } from '../sqlite/connection.ts';
import { isFsyncFailure } from './batch.ts';

/** A read transaction, of another program or a backup, that keeps the WAL from being reset. */
export interface HeldWal {
  /** How long it has been observed, in milliseconds; it may be older. */
  readonly heldMs: number;
  /** Size of the WAL in bytes. */
  readonly bytes: number;
}

interface CheckpointerOptions {
  /** Size of the WAL in bytes; 0 if its files must not be changed. */
  walBytes(): number;
  /** Set to 1 while reads of this process should not start long transactions. */
  readonly waits: Int32Array;
  /** Called when no later write can be durable. */
  onFatal(error: string): void;
  /**
   * Called once a reader has held the WAL for `NOTICE_AFTER`, and again each time that duration has doubled.
   */
  onHeld(held: HeldWal): void;
  /** A monotonic clock in milliseconds. */
  readonly now?: () => number;
  /** The version of SQLite. Default: the one of this Node. */
  readonly sqlite?: string;
}

/** The result row of `PRAGMA wal_checkpoint`. */
export interface Outcome {
  /** 1 if a reader or another writer blocked a RESTART. */
  readonly busy: number;
  /** Number of frames in the WAL. */
  readonly log: number;
  /** Number of frames copied into the database. */
  readonly checkpointed: number;
}

/** The answer of the thread. */
export type ThreadResult = Outcome | { readonly message: string; readonly errcode?: unknown };

/** A frame of the WAL that checkpoints cannot pass. */
interface Held {
  readonly frame: number;
  readonly since: number;
  /** The age at which to report it next, in milliseconds. */
  noticeAfter: number;
}

/** How long a checkpoint waits for readers, in milliseconds. */
const PATIENCE = 10;
/** Size of a page in the WAL with its header, in bytes. */
const FRAME = 4096 + 24;
/** If more bytes than this must be copied, a thread does it while commits continue. */
const LONG = 4 * WAL_LIMIT;
/** The file of the WAL keeps up to this size in bytes: commits into an existing file cost less than growing one. */
const KEPT = 4 * WAL_LIMIT;
/** From this version of SQLite on (3.n) NOOP counts the frames of a WAL; early ones take it for PASSIVE. */
const COUNTS_SINCE = 52;
/**
 * Delay before a checkpoint, in milliseconds, in which started transactions of this process can end. It
 * doubles while checkpoints are incomplete.
 */
const RETRY = 50;
const MAX_RETRY = 2_000;
const NOTICE_AFTER = 10_000;

/**
 * Keeps the WAL short: beyond WAL_LIMIT it is checkpointed, and the next commit begins the file again. A reader
 * can prevent that; the checkpoint is then retried, even without further writes. Under a steady load of reads
 * there is almost never a moment without a reader, so `waits` asks them to pause.
 */
export class Checkpointer implements AsyncDisposable {
  readonly #options: Required<CheckpointerOptions>;
  readonly #file: string;
  readonly #restart: StatementSync;
  /** Counts the frames; undefined if this SQLite cannot. */
  readonly #count: StatementSync | undefined;
  /** Sets how long statements wait for locks, in milliseconds. */
  readonly #wait: (time: number) => void;
  readonly #usualWait: number;
  /** Set while the WAL is too long. */
  #timer: NodeJS.Timeout | undefined;
  #delay = RETRY;
  /** When the timer ends, by `performance.now()`: under a steady load of commits the event loop comes to it late. */
  #due = 0;
  /** The part of a too long WAL that is already in the database, in bytes. */
  #copied = 0;
  #held: Held | undefined;
  /** Resolves once the thread has copied what it was asked to. */
  #copying: Promise<void> | undefined;
  readonly #thread = new CheckpointThread();

  /** `db` is a connection to a file, from `openWriteConnection`. */
  constructor(db: DatabaseSync, options: CheckpointerOptions) {
    const { sqlite = process.versions.sqlite ?? '' } = options;
    this.#options = { now: () => performance.now(), sqlite, ...options };
    this.#file = db.location() ?? '';
    // Unlike PASSIVE, RESTART waits for readers.
    this.#restart = db.prepare('PRAGMA wal_checkpoint(RESTART)');
    if (Number(sqlite.split('.')[1]) >= COUNTS_SINCE) {
      this.#count = db.prepare('PRAGMA wal_checkpoint(NOOP)');
      db.exec(`PRAGMA journal_size_limit = ${KEPT}`);
    }
    this.#usualWait = Number(db.prepare('PRAGMA busy_timeout').get()?.timeout);
    // Not a prepared statement: SQLite sets it when it compiles the text, and not in the first run.
    this.#wait = (time) => db.exec(`PRAGMA busy_timeout = ${time}`);
  }

  /**
   * Called after each commit; if the WAL has become too long, checkpoints between this commit and a later one.
   */
  maintain(): void {
    if (this.#timer === undefined) {
      if (this.#look().bytes > WAL_LIMIT) this.#tryLater();
    } else if (this.#copying === undefined && performance.now() >= this.#due) this.#try();
  }

  /** Checkpoints the WAL immediately. */
  checkpoint(): void {
    try {
      this.#wait(PATIENCE);
      const isComplete = this.#note(this.#restart.get() as unknown as Outcome);
      if (isComplete) this.#settle();
      else this.#tryLater();
    } catch (error) {
      this.#noteFailure(error);
    } finally {
      this.#wait(this.#usualWait);
    }
  }

  /** Waits for the thread, and ends it. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#copying;
    await this.#thread[Symbol.asyncDispose]();
    this.#settle();
  }

  /** What the WAL has, and what of that is not in the database, in bytes. */
  #look(): { readonly bytes: number; readonly left: number } {
    const size = this.#options.walBytes();
    if (size > WAL_LIMIT && this.#count !== undefined) {
      try {
        const { busy, log, checkpointed } = this.#count.get() as unknown as Outcome;
        if (busy === 0) return { bytes: log * FRAME, left: (log - checkpointed) * FRAME };
      } catch {
        // SQLite does not count in a transaction. The WAL has no more than its file.
      }
    }
    return { bytes: size, left: size - this.#copied };
  }

  readonly #try = (): void => {
    const { bytes, left } = this.#look();
    if (bytes <= WAL_LIMIT) this.#settle();
    else if (left <= LONG) this.checkpoint();
    else this.#copying ??= this.#copy(left);
  };

  /** Lets the thread copy the rest, `left` bytes when it is asked. */
  async #copy(left: number): Promise<void> {
    const result = await this.#thread.checkpoint(this.#file);
    this.#copying = undefined;
    if ('message' in result) return this.#noteFailure(result);
    const before = this.#copied;
    this.#note(result);
    if (this.#copied <= before) this.#tryLater();
    // Usually fewer commits came meanwhile; more would come during a delay.
    else if (this.#look().left < left) this.#try();
    // Commits wait: the WAL would grow without a bound.
    else this.checkpoint();
  }

  /**
   * Records the result; returns whether the whole WAL is in the database and no reader blocked the RESTART.
   */
  #note({ busy, log, checkpointed }: Outcome): boolean {
    this.#copied = checkpointed * FRAME;
    const isComplete = busy === 0 && checkpointed === log;
    if (isComplete || this.#held?.frame !== checkpointed) {
      this.#delay = RETRY;
      this.#held = { frame: checkpointed, since: this.#options.now(), noticeAfter: NOTICE_AFTER };
    } else this.#noteHeld(this.#held);
    return isComplete;
  }

  #noteHeld(held: Held): void {
    const { now, onHeld, walBytes } = this.#options;
    const heldMs = now() - held.since;
    if (heldMs < held.noticeAfter) return;
    held.noticeAfter *= 2;
    onHeld({ heldMs, bytes: walBytes() });
  }

  #noteFailure(error: unknown): void {
    // On a full disk, only the checkpoint fails; the WAL still contains all commits.
    if (isFsyncFailure(error)) this.#options.onFatal((error as Error).message);
    else this.#tryLater();
  }

  #tryLater(): void {
    const delay = this.#delay;
    this.#delay = Math.min(2 * delay, MAX_RETRY);
    clearTimeout(this.#timer);
    this.#due = performance.now() + delay;
    this.#timer = setTimeout(this.#try, delay);
    // A reader that stays this long is not in this process.
    Atomics.store(this.#options.waits, 0, delay < MAX_RETRY ? 1 : 0);
  }

  #settle(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#delay = RETRY;
    this.#copied = 0;
    this.#held = undefined;
    Atomics.store(this.#options.waits, 0, 0);
  }
}

/** How long the thread waits for another checkpoint, in milliseconds: to start one takes longer than most checkpoints. */
const IDLE = 10_000;

/** The thread that checkpoints while commits continue. It starts with the first checkpoint and ends when it is idle. */
class CheckpointThread implements AsyncDisposable {
  #worker: Worker | undefined;
  #answer: (result: ThreadResult) => void = () => {};
  #idle: NodeJS.Timeout | undefined;

  /** Checkpoints a file; one at a time. */
  async checkpoint(file: string): Promise<ThreadResult> {
    clearTimeout(this.#idle);
    const { promise, resolve } = Promise.withResolvers<ThreadResult>();
    this.#answer = resolve;
    this.#worker ??= this.#start();
    this.#worker.postMessage(file);
    const result = await promise;
    this.#idle = setTimeout(() => void this[Symbol.asyncDispose](), IDLE).unref();
    return result;
  }

  #start(): Worker {
    // `.ts` when run from source, `.js` in the built package.
    const script = `src/sql/sqlite-writer/checkpoint-thread${extname(import.meta.url)}`;
    const worker = new Worker(new URL(script, PACKAGE_ROOT), {
      name: 'checkpoint',
      env: threadEnvironment(),
    });
    worker.on('message', (result: ThreadResult) => this.#answer(result));
    worker.on('error', ({ message }) => this.#answer({ message }));
    worker.on('exit', () => {
      // Another one may have started since this one was ended while idle.
      if (this.#worker !== worker) return;
      this.#worker = undefined;
      this.#answer({ message: 'the thread ended without a result' });
    });
    return worker;
  }

  /** Ends the thread, which must be idle: it has no open connection then. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#idle);
    const worker = this.#worker;
    this.#worker = undefined;
    await worker?.terminate();
  }
}

const CHUNK = 1024 * 1024;

/**
 * Rewrites the WAL of an earlier process in place, unchanged, with synced writes. After a failed fsync the
 * kernel marks pages as clean although they are not on disk, so a later fsync would skip them and a power
 * failure would lose them (Rebello et al., "Can Applications Recover from fsync Failures?", 2020). Throws
 * file system errors.
 */
export function rewriteWal(db: DatabaseSync): void {
  const wal = `${db.location()}-wal`;
  // The write lock keeps other processes from appending to the WAL.
  db.exec('BEGIN IMMEDIATE');
  try {
    if (existsSync(wal)) rewrite(wal);
  } finally {
    db.exec('ROLLBACK');
  }
}

function rewrite(path: string): void {
  // Synchronous writes, because Node's permission model does not allow fsync.
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

/**
 * Writes a page into the WAL without changing anything; throws if the file is not writable. This commit is
 * never acknowledged, so a new WAL is not synced: the next commit's sync covers it. A WAL with frames may
 * restart, and SQLite must then sync its header before other frames follow.
 */
export function proveWritable(db: DatabaseSync): void {
  const isNew = statSync(`${db.location()}-wal`, { throwIfNoEntry: false })?.size === 0;
  db.exec(`PRAGMA synchronous=${isNew ? 'OFF' : 'NORMAL'}; PRAGMA user_version=0`);
}
