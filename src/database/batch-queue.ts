import { StoreUnavailableError } from '../core/store-errors.ts';
import { type DatabaseObserver, unobserved } from './observer.ts';

/** More writes than this make a batch that would keep its first ones waiting; an engine may make one of several. */
const MAX_BATCH = 1024;

/** How one write ended: the rows it returned, in the form its engine gives them, or why it changed nothing. */
export type WriteResult<R> =
  | { readonly rows: R }
  /** A text becomes a StoreUnavailableError. */
  | { readonly error: string | StoreUnavailableError };

/** How a batch ended, write by write. With `fatal` no later write can be trusted to be durable. */
export interface BatchResult<R> {
  readonly results: readonly WriteResult<R>[];
  readonly fatal?: string;
  /** The next batch that ends was part of the same commit. */
  readonly goesOn?: boolean;
}

/** Takes a batch to the engine, and calls back once it is committed or has failed. */
export type SendBatch<W, R> = (writes: readonly W[], done: (result: BatchResult<R>) => void) => void;

export interface BatchQueueOptions<W, R> {
  readonly send: SendBatch<W, R>;
  /** Called once, when no later write can be trusted. */
  onFatal?(error: StoreUnavailableError): void;
  readonly observer?: DatabaseObserver | undefined;
  /** Batches that may be under way at the same time; default 1. */
  readonly lanes?: number;
  /** Writes that make a batch worth sending while another one is under way; default 1. */
  readonly least?: number;
  /** So many writes are sent at once, before the turn ends, when nothing is under way; default: they wait. */
  readonly enough?: number;
  /** A write that waits longer for its batch is refused, in milliseconds; default: it waits. */
  readonly maxWait?: number;
}

interface Waiting<W, R> {
  readonly write: W;
  /** When it came, in milliseconds; only where a wait is bounded. */
  readonly since: number;
  resolve(rows: R): void;
  reject(error: Error): void;
}

/**
 * Natural group commit: a batch is under way, and whatever gathers meanwhile is the next one. Where there are several
 * lanes, what waits at a turn's end goes in a free one, if it is enough to be worth it.
 */
export class BatchQueue<W, R> {
  readonly #send: SendBatch<W, R>;
  readonly #onFatal: ((error: StoreUnavailableError) => void) | undefined;
  readonly #observer: DatabaseObserver;
  readonly #lanes: number;
  readonly #least: number;
  readonly #enough: number | undefined;
  readonly #maxWait: number | undefined;
  #waiting: Waiting<W, R>[] = [];
  /** What is known of a commit of several batches whose last one has not ended. */
  #commit: { writes: number; failed: number; readonly began: number } | undefined;
  /** Lanes in which a batch is scheduled or under way. */
  #busy = 0;
  #scheduled = false;
  #refusal: StoreUnavailableError | undefined;
  #idle: PromiseWithResolvers<void> | undefined;
  #patience: NodeJS.Timeout | undefined;

  constructor({
    send,
    onFatal,
    observer = unobserved,
    lanes = 1,
    least = 1,
    enough,
    maxWait,
  }: BatchQueueOptions<W, R>) {
    this.#send = send;
    this.#onFatal = onFatal;
    this.#observer = observer;
    this.#lanes = lanes;
    this.#least = least;
    this.#enough = enough;
    this.#maxWait = maxWait;
  }

  /** Resolves once the write is durable, to what `read` makes of its rows; rejects with StoreUnavailableError. */
  submit(write: W): Promise<R>;
  submit<T>(write: W, read: (rows: R) => T): Promise<T>;
  submit(write: W, read: (rows: R) => unknown = (rows) => rows): Promise<unknown> {
    if (this.#refusal !== undefined) return Promise.reject(this.#refusal);
    const { promise, resolve: give, reject } = Promise.withResolvers<unknown>();
    const resolve = (rows: R) => give(read(rows));
    const since = this.#maxWait === undefined ? 0 : performance.now();
    this.#waiting.push({ write, since, resolve, reject });
    if (
      !this.#scheduled &&
      this.#busy < this.#lanes &&
      (this.#busy === 0 || this.#waiting.length >= this.#least)
    ) {
      this.#scheduled = true;
      this.#busy++;
      // The requests that arrived in this turn of the event loop share the first batch.
      setImmediate(this.#begin);
    } else if (this.#scheduled && this.#busy === 1 && this.#waiting.length === this.#enough) {
      this.#scheduled = false;
      this.#flush();
    }
    if (this.#maxWait !== undefined) this.#patience ??= setTimeout(this.#refuseLate, this.#maxWait);
    return promise;
  }

  /** Refuses every waiting and later write, because none can be trusted any more. */
  fail(error: StoreUnavailableError): void {
    if (this.#refusal !== undefined) return;
    this.#refuse(error);
    this.#onFatal?.(error);
  }

  /** Refuses every later write, because the database is being closed. */
  close(): void {
    if (this.#refusal === undefined) this.#refuse(new StoreUnavailableError('The database is closed'));
  }

  #refuse(error: StoreUnavailableError): void {
    this.#refusal = error;
    for (const waiting of this.#waiting.splice(0)) waiting.reject(error);
  }

  /** Resolves once nothing waits and nothing is under way. */
  async idle(): Promise<void> {
    if (this.#busy === 0) return;
    this.#idle ??= Promise.withResolvers<void>();
    await this.#idle.promise;
  }

  readonly #begin = (): void => {
    // What was scheduled has been sent before.
    if (!this.#scheduled) return;
    this.#scheduled = false;
    this.#flush();
  };

  /** Sends what waits in a lane that is counted as busy already. */
  #flush(): void {
    const batch = this.#waiting.splice(0, MAX_BATCH);
    if (batch.length === 0) {
      this.#busy--;
      if (this.#busy > 0) return;
      clearTimeout(this.#patience);
      this.#patience = undefined;
      this.#idle?.resolve();
      this.#idle = undefined;
      return;
    }
    const began = performance.now();
    this.#send(
      batch.map(({ write }) => write),
      (result) => this.#settle(batch, result, began),
    );
  }

  #settle(batch: readonly Waiting<W, R>[], { results, fatal, goesOn }: BatchResult<R>, began: number): void {
    if (fatal !== undefined) this.fail(new StoreUnavailableError(`The store is no longer durable: ${fatal}`));
    // First of all the engine is kept busy.
    this.#flush();
    let failed = 0;
    let i = 0;
    for (const waiting of batch) {
      const result = results[i++] ?? { error: 'no result' };
      if ('rows' in result) waiting.resolve(result.rows);
      else {
        failed++;
        waiting.reject(
          typeof result.error === 'string'
            ? new StoreUnavailableError(`The write failed: ${result.error}`)
            : result.error,
        );
      }
    }
    const commit = this.#commit ?? { writes: 0, failed: 0, began };
    commit.writes += batch.length;
    commit.failed += failed;
    this.#commit = goesOn ? commit : undefined;
    if (goesOn) return;
    this.#observer.batch(commit.writes, commit.failed, (performance.now() - commit.began) / 1_000);
  }

  /** Nothing of what is refused here was sent. */
  readonly #refuseLate = (): void => {
    this.#patience = undefined;
    const oldest = this.#waiting[0];
    const maxWait = this.#maxWait;
    if (oldest === undefined || maxWait === undefined) return;
    const now = performance.now();
    const firstInTime = this.#waiting.findIndex(({ since }) => now - since < maxWait);
    const late = this.#waiting.splice(0, firstInTime === -1 ? this.#waiting.length : firstInTime);
    const error = new StoreUnavailableError(`The write waited longer than ${maxWait} ms for the database`);
    for (const { reject } of late) reject(error);
    const next = this.#waiting[0];
    if (next !== undefined) {
      this.#patience = setTimeout(this.#refuseLate, Math.max(1, maxWait - (now - next.since)));
    }
  };
}
