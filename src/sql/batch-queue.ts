import { StoreUnavailableError } from '../core/errors.ts';

/** Maximum number of writes per batch, which bounds the latency of its first write. */
const MAX_BATCH = 1024;

/**
 * The result of one write: the rows it returned, in the engine's format, or the error because of which it
 * changed nothing.
 */
export type WriteResult<R> =
  | { readonly rows: R }
  /** A string is wrapped in a StoreUnavailableError. */
  | { readonly error: string | StoreUnavailableError };

/** The results of a batch, in the order of its writes. */
export interface BatchResult<R> {
  readonly results: readonly WriteResult<R>[];
  /** The reason why no later write can be durable. */
  readonly fatal?: string;
  /** Whether the next batch belongs to the same commit. */
  readonly commitContinues?: boolean;
}

/** Sends a batch to the engine; calls `done` once it is committed or has failed. */
type SendBatch<W, R> = (writes: readonly W[], done: (result: BatchResult<R>) => void) => void;

/** Options of a queue. */
export interface BatchQueueOptions<W, R> {
  readonly send: SendBatch<W, R>;
  /** Called once, when no later write can be durable. */
  onFatal?(error: StoreUnavailableError): void;
  readonly observer?: DatabaseObserver;
  /** Maximum number of batches in flight. Default: 1. */
  readonly concurrency?: number;
  /** Minimum size of a batch to send while another is in flight. Default: 1. */
  readonly minBatch?: number;
  /** If nothing is in flight, a batch of this size is sent before the tick ends. Default: never. */
  readonly eagerBatch?: number;
  /** Maximum time that a write waits to be sent, in milliseconds; then it is refused. Default: no limit. */
  readonly maxWait?: number;
}

/** An observer that does nothing. */
export const unobserved: DatabaseObserver = {
  reads: () => ({ count: 0, timed() {} }),
  sent: () => () => {},
  batch() {},
};

const DEFAULTS = { observer: unobserved, concurrency: 1, minBatch: 1, eagerBatch: Number.POSITIVE_INFINITY };

interface Waiting<W, R> {
  readonly write: W;
  /** When it was submitted, in milliseconds; set only if `maxWait` is. */
  readonly since: number;
  end(result: WriteResult<R>): void;
}

const errorOf = (error: string | StoreUnavailableError): StoreUnavailableError =>
  typeof error === 'string' ? new StoreUnavailableError(`The write failed: ${error}`) : error;

/**
 * Group commit: writes that arrive while a batch is in flight form the next one. With a higher `concurrency`,
 * waiting writes are also sent at the end of a tick if there are at least `minBatch` of them.
 */
export class BatchQueue<W, R> implements AsyncDisposable {
  readonly #options: BatchQueueOptions<W, R> & typeof DEFAULTS;
  #waiting: Waiting<W, R>[] = [];
  /** The totals of a commit that spans several batches. */
  #commit: { writes: number; failed: number; readonly began: number } | undefined;
  /** Batches that are scheduled or in flight. */
  #inFlight = 0;
  #scheduled = false;
  #refusal: StoreUnavailableError | undefined;
  #idle: PromiseWithResolvers<void> | undefined;
  #waitTimer: NodeJS.Timeout | undefined;
  /** When the timed write was submitted, which measures the delay of the queue; 0 if there is none. */
  #probedAt = 0;

  constructor(options: BatchQueueOptions<W, R>) {
    this.#options = { ...DEFAULTS, ...options };
  }

  /** Resolves once the write is durable, to its rows mapped by `read`; rejects with StoreUnavailableError. */
  submit(write: W): Promise<R>;
  submit<T>(write: W, read: (rows: R) => T): Promise<T>;
  submit(write: W, read: (rows: R) => unknown = (rows) => rows): Promise<unknown> {
    if (this.#refusal !== undefined) return Promise.reject(this.#refusal);
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const end = (result: WriteResult<R>) => {
      if ('rows' in result) resolve(read(result.rows));
      else reject(errorOf(result.error));
    };
    this.#waiting.push({ write, since: this.#now(), end });
    this.#added(promise);
    return promise;
  }

  /**
   * Submits writes of which each succeeds or fails alone. Resolves once all have ended, to the rows of each mapped by
   * `read`, or its error.
   */
  submitAll<T>(
    writes: readonly W[],
    read: (rows: R, nth: number) => T,
  ): Promise<readonly (T | StoreUnavailableError)[]> {
    const refusal = this.#refusal;
    if (refusal !== undefined) return Promise.resolve(writes.map(() => refusal));
    if (writes.length === 0) return Promise.resolve([]);
    const { promise, resolve } = Promise.withResolvers<readonly (T | StoreUnavailableError)[]>();
    const results = new Array<T | StoreUnavailableError>(writes.length);
    let left = writes.length;
    const since = this.#now();
    for (const [nth, write] of writes.entries()) {
      const end = (result: WriteResult<R>) => {
        results[nth] = 'rows' in result ? read(result.rows, nth) : errorOf(result.error);
        left--;
        if (left === 0) resolve(results);
      };
      this.#waiting.push({ write, since, end });
    }
    this.#added(promise);
    return promise;
  }

  /** The time at which a write starts to wait; 0 if it may wait for any time. */
  #now(): number {
    return this.#options.maxWait === undefined ? 0 : performance.now();
  }

  /** Sends the waiting writes if it is time; `added` settles with those added last. */
  #added(added: Promise<unknown>): void {
    const { concurrency, minBatch, eagerBatch, maxWait } = this.#options;
    if (
      !this.#scheduled &&
      this.#inFlight < concurrency &&
      (this.#inFlight === 0 || this.#waiting.length >= minBatch)
    ) {
      this.#scheduled = true;
      this.#inFlight++;
      // The writes of one tick share the first batch.
      setImmediate(this.#flushScheduled);
    }
    if (this.#scheduled && this.#inFlight === 1 && this.#waiting.length >= eagerBatch) {
      this.#scheduled = false;
      this.#flush();
    }
    if (this.#probedAt === 0) this.#probe(added);
    if (maxWait !== undefined) this.#waitTimer ??= setTimeout(this.#refuseLate, maxWait);
  }

  /** How long a write has been waiting for its result, in milliseconds; 0 if none is waiting. */
  get delay(): number {
    return this.#probedAt === 0 ? 0 : performance.now() - this.#probedAt;
  }

  /**
   * Only one write at a time is timed: writes submitted meanwhile wait no longer than it and the next one.
   */
  #probe(write: Promise<unknown>): void {
    this.#probedAt = performance.now();
    const end = () => {
      this.#probedAt = 0;
    };
    write.then(end, end);
  }

  /** Refuses all waiting and later writes, because they could not be durable. */
  fail(error: StoreUnavailableError): void {
    if (this.#refusal !== undefined) return;
    this.#refuse(error);
    this.#options.onFatal?.(error);
  }

  /** Waits for the accepted writes, then refuses later ones. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.idle();
    if (this.#refusal === undefined) this.#refuse(new StoreUnavailableError('The database is closed'));
  }

  #refuse(error: StoreUnavailableError): void {
    this.#refusal = error;
    for (const { end } of this.#waiting.splice(0)) end({ error });
  }

  /** Resolves once no write is waiting or in flight. */
  async idle(): Promise<void> {
    if (this.#inFlight === 0) return;
    this.#idle ??= Promise.withResolvers<void>();
    await this.#idle.promise;
  }

  readonly #flushScheduled = (): void => {
    // An eager batch was sent meanwhile.
    if (!this.#scheduled) return;
    this.#scheduled = false;
    this.#flush();
  };

  /** Sends the waiting writes as a batch; `#inFlight` already counts it. */
  #flush(): void {
    const batch = this.#waiting.splice(0, MAX_BATCH);
    if (batch.length === 0) {
      this.#inFlight--;
      if (this.#inFlight > 0) return;
      clearTimeout(this.#waitTimer);
      this.#waitTimer = undefined;
      this.#idle?.resolve();
      this.#idle = undefined;
      return;
    }
    const began = performance.now();
    const answered = this.#options.observer.sent(began);
    this.#options.send(
      batch.map(({ write }) => write),
      (result) => {
        answered();
        this.#settle(batch, result, began);
      },
    );
  }

  #settle(
    batch: readonly Waiting<W, R>[],
    { results, fatal, commitContinues }: BatchResult<R>,
    began: number,
  ): void {
    if (fatal !== undefined) this.fail(new StoreUnavailableError(`The store is no longer durable: ${fatal}`));
    // Sent before results are resolved, to keep the engine busy.
    this.#flush();
    let failed = 0;
    let i = 0;
    for (const waiting of batch) {
      const result = results[i++] ?? { error: 'no result' };
      if (!('rows' in result)) failed++;
      waiting.end(result);
    }
    const commit = this.#commit ?? { writes: 0, failed: 0, began };
    commit.writes += batch.length;
    commit.failed += failed;
    this.#commit = commitContinues ? commit : undefined;
    if (commitContinues) return;
    this.#options.observer.batch(commit.writes, commit.failed, (performance.now() - commit.began) / 1_000);
  }

  /** Refuses writes that have waited for `maxWait`; they were not sent. */
  readonly #refuseLate = (): void => {
    this.#waitTimer = undefined;
    const oldest = this.#waiting[0];
    const { maxWait } = this.#options;
    if (oldest === undefined || maxWait === undefined) return;
    const now = performance.now();
    const firstInTime = this.#waiting.findIndex(({ since }) => now - since < maxWait);
    const late = this.#waiting.splice(0, firstInTime === -1 ? this.#waiting.length : firstInTime);
    const error = new StoreUnavailableError(`The write waited longer than ${maxWait} ms for the database`);
    for (const { end } of late) end({ error });
    const next = this.#waiting[0];
    if (next !== undefined) {
      this.#waitTimer = setTimeout(this.#refuseLate, Math.max(1, maxWait - (now - next.since)));
    }
  };
}

/** Statistics of the reads of one operation: all are counted, a sample is timed. */
export interface ReadTally {
  /** Incremented by `counted`. */
  count: number;
  /** Records the duration of a timed read, in seconds. */
  timed(seconds: number): void;
}

/** Receives counts and durations from a database. It runs on the hot path, so it must only count. */
export interface DatabaseObserver {
  /** Creates the tally of an operation such as `user.read`; called once per operation. */
  reads(operation: string): ReadTally;
  /** Called when writes are sent, with the time of `performance.now()`. The queue calls the result when they are answered. */
  sent(began: number): () => void;
  /**
   * Called after each successful or failed commit with its number of writes, how many of them failed, and its
   * seconds.
   */
  batch(writes: number, failed: number, seconds: number): void;
}

/** One in this many reads is timed: reading the clock twice is a noticeable part of a short read. */
export const READ_SAMPLE = 64;

/** Counts a read, synchronous or asynchronous, and times one in `READ_SAMPLE`. */
export function counted<T>(tally: ReadTally, read: () => T): T {
  if (tally.count++ % READ_SAMPLE !== 0) return read();
  const began = performance.now();
  const record = () => tally.timed((performance.now() - began) / 1_000);
  const found = read();
  if (found instanceof Promise) found.then(record, () => {});
  else record();
  return found;
}
