import { closeSync, existsSync, openSync, readSync, statSync, writeSync } from 'node:fs';
import { extname } from 'node:path';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { Worker } from 'node:worker_threads';
import { PACKAGE_ROOT, threadEnvironment } from '../../core/package-root.ts';
import { WAL_LIMIT } from '../sqlite/connection.ts';
import { isFsyncFailure } from './batch.ts';

/** A read transaction that keeps the WAL from being emptied: of another program, or of a backup. */
export interface HeldWal {
  /** How long it has been seen, in milliseconds; it can be older. */
  readonly heldMs: number;
  /** Size of the WAL. */
  readonly bytes: number;
}

interface CheckpointerOptions {
  /** Size of the WAL; 0 while its files must stay as they are. */
  walBytes(): number;
  /** Set to 1 while the reads of this process should not begin transactions that outlast them. */
  readonly waits: Int32Array;
  /** Called when no later write can be durable. */
  onFatal(error: string): void;
  /** Called once a reader has held the WAL for `NOTICE_AFTER`, and again whenever that time has doubled. */
  onHeld(held: HeldWal): void;
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number;
}

/** The row of `PRAGMA wal_checkpoint`. */
export interface Outcome {
  /** 1 when a reader or another writer was in the way of a RESTART. */
  readonly busy: number;
  /** Frames in the WAL. */
  readonly log: number;
  /** How many of them are in the database. */
  readonly checkpointed: number;
}

/** What the thread answers. */
export type ThreadResult = Outcome | { readonly message: string; readonly errcode?: unknown };

/** A frame of the WAL that no checkpoint passes. */
interface Held {
  readonly frame: number;
  readonly since: number;
  /** Age of the next notice. */
  noticeAfter: number;
}

/** How long a checkpoint waits for readers, in milliseconds. */
const PATIENCE = 10;
/** A page in the WAL, with its header, in bytes. */
const FRAME = 4096 + 24;
/** With more bytes than this to copy, a thread does it while commits go on. */
const LONG = 4 * WAL_LIMIT;
/**
 * Delay of a checkpoint, in milliseconds: in that time the transactions end that reads of this process have begun. It
 * doubles while checkpoints are incomplete.
 */
const RETRY = 50;
const MAX_RETRY = 2_000;
const NOTICE_AFTER = 10_000;

/**
 * Keeps the WAL short. Beyond WAL_LIMIT it is checkpointed, and the next commit starts it anew and truncates the file.
 * A reader can prevent that; then it is tried again, even if nothing else is written. Under a steady load of reads the
 * moment hardly ever comes by chance, hence `waits`.
 */
export class Checkpointer implements AsyncDisposable {
  readonly #options: Required<CheckpointerOptions>;
  readonly #file: string;
  readonly #restart: StatementSync;
  readonly #patient: StatementSync;
  readonly #usual: StatementSync;
  /** Set while the WAL is too long. */
  #timer: NodeJS.Timeout | undefined;
  #delay = RETRY;
  /** What is in the database already of a WAL that is too long, in bytes. */
  #copied = 0;
  #held: Held | undefined;
  #thread: Promise<void> | undefined;

  /** `db` is a connection of `openWriteConnection` to a file. */
  constructor(db: DatabaseSync, options: CheckpointerOptions) {
    this.#options = { now: () => performance.now(), ...options };
    this.#file = db.location() ?? '';
    // PASSIVE waits for nobody.
    this.#restart = db.prepare('PRAGMA wal_checkpoint(RESTART)');
    const timeout = Number(db.prepare('PRAGMA busy_timeout').get()?.timeout);
    this.#patient = db.prepare(`PRAGMA busy_timeout = ${PATIENCE}`);
    this.#usual = db.prepare(`PRAGMA busy_timeout = ${timeout}`);
  }

  /** Called after each commit; a WAL that has become too long is checkpointed soon, between two later ones. */
  maintain(): void {
    if (this.#timer === undefined && this.#options.walBytes() > WAL_LIMIT) this.#tryLater();
  }

  /** Checkpoints the WAL at once. */
  checkpoint(): void {
    try {
      this.#patient.get();
      const isComplete = this.#note(this.#restart.get() as unknown as Outcome);
      if (isComplete) this.#settle();
      else this.#tryLater();
    } catch (error) {
      this.#noteFailure(error);
    } finally {
      this.#usual.get();
    }
  }

  /** Waits for its thread. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#thread;
    this.#settle();
  }

  readonly #try = (): void => {
    const bytes = this.#options.walBytes();
    if (bytes <= WAL_LIMIT) this.#settle();
    else if (bytes - this.#copied <= LONG) this.checkpoint();
    else this.#thread ??= this.#runThread();
  };

  async #runThread(): Promise<void> {
    // `.ts` when run from source, `.js` in the built package.
    const script = `src/sql/sqlite-writer/checkpoint-thread${extname(import.meta.url)}`;
    const worker = new Worker(new URL(script, PACKAGE_ROOT), {
      name: 'checkpoint',
      workerData: { file: this.#file },
      env: threadEnvironment(),
    });
    let result: ThreadResult = { message: 'the thread ended without a result' };
    worker.on('message', (message: ThreadResult) => {
      result = message;
    });
    worker.on('error', ({ message }) => {
      result = { message };
    });
    await new Promise((resolve) => worker.on('exit', resolve));
    this.#thread = undefined;
    if ('message' in result) return this.#noteFailure(result);
    this.#note(result);
    this.#tryLater();
  }

  /** Whether all of the WAL is in the database, and a RESTART has found no reader on it. */
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
    // On a full disk only the checkpoint fails; the WAL holds all commits.
    if (isFsyncFailure(error)) this.#options.onFatal((error as Error).message);
    else this.#tryLater();
  }

  #tryLater(): void {
    const delay = this.#delay;
    this.#delay = Math.min(2 * delay, MAX_RETRY);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#try, delay);
    // A reader that stays for so long is none of this process.
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

/**
 * Writes a page into the WAL and changes nothing; throws when the file cannot be written to. Nobody is told of this
 * commit, so a new WAL is not synced: the sync of the next commit covers it. A WAL with frames may begin anew, and then
 * SQLite must sync its header before other frames follow.
 */
export function proveWritable(db: DatabaseSync): void {
  const isNew = statSync(`${db.location()}-wal`, { throwIfNoEntry: false })?.size === 0;
  db.exec(`PRAGMA synchronous=${isNew ? 'OFF' : 'NORMAL'}; PRAGMA user_version=0`);
}
