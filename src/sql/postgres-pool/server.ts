import { setTimeout as delay } from 'node:timers/promises';
import { OutcomeUnknownError, StoreUnavailableError } from '../../core/errors.ts';
import {
  type Connection,
  describeFault,
  isLocked,
  isNotSent,
  isOutcomeUnknown,
  isTransient,
  type MakeSteps,
  type Row,
  STATEMENT_TIMEOUT,
  type Statement,
  type Steps,
  UnconfirmedError,
} from './connection.ts';

/** Maximum number of connections to a server. */
export interface ServerSize {
  /** Number of connections shared by short reads. */
  readonly shared: number;
  /** Number of connections that run one write or long read at a time. */
  readonly alone: number;
  /** Whether a connection may be used now, or one that is yet to be opened. Default: any. */
  allows?(connection: Connection | undefined): boolean;
}

/** Ten connections, including the notifier's. */
const PRIMARY: ServerSize = { shared: 3, alone: 6 };
/**
 * How long a service's statements wait for a connection, in milliseconds: clients are told to retry later.
 */
const SERVICE_WAIT = 500;
/** Maximum number of short reads in flight on a shared connection; they are pipelined. */
const READS_PER_CONNECTION = 256;
/** Timeout of a short read, in milliseconds. */
const READ_TIMEOUT = 2_000;
/** Timeout of a write or long read, in milliseconds; the server cancels a long statement before that. */
const WRITE_TIMEOUT = STATEMENT_TIMEOUT + 1_000;
/**
 * Retries of a write that was rolled back because of a concurrent one: maximum number, and maximum pause in
 * milliseconds.
 */
const RETRIES = { max: 4, wait: 40 };
/** How long a write that waits for locks is retried, in milliseconds. */
const LOCK_RETRIES = 1_000;

/**
 * A server with one pool for short reads and one for writes and long reads. Reads fail with
 * StoreUnavailableError, caused by the driver's error.
 */
export class Server implements AsyncDisposable {
  readonly #readers: Pool;
  readonly #writers: Pool;
  /** Maximum time that a statement waits for a connection, in milliseconds. */
  readonly maxWait: number;

  constructor(open: () => Promise<Connection>, size = PRIMARY, maxWait = SERVICE_WAIT) {
    const { shared, alone } = size;
    const allows = (connection: Connection | undefined) => size.allows?.(connection) ?? true;
    this.maxWait = maxWait;
    this.#readers = new Pool({
      open,
      allows,
      maxWait,
      size: shared,
      depth: READS_PER_CONNECTION,
      timeout: READ_TIMEOUT,
      onReconnect: () => this.#writers.resume(),
    });
    this.#writers = new Pool({
      open: () => openForWrites(open),
      allows,
      maxWait,
      size: alone,
      depth: 1,
      timeout: WRITE_TIMEOUT,
      onReconnect: () => this.#readers.resume(),
    });
  }

  /** Runs a short read, pipelined with others. */
  read(statement: Statement, values: readonly unknown[]): Promise<readonly Row[]> {
    const work = (connection: Connection) => connection.run(statement, values);
    return this.#readers.use(work).catch((error: unknown) => {
      // Reads are safe to retry, and the pool has removed the lost connection.
      if (!isOutcomeUnknown(error) && !isNotSent(error)) throw unavailable('The read failed', error);
      return this.#readers.use(work).catch((again: unknown) => {
        throw unavailable('The read failed', again);
      });
    });
  }

  /** Runs a long read, alone on a connection. */
  async readAlone(statement: Statement, values: readonly unknown[]): Promise<readonly Row[]> {
    try {
      return await this.#writers.use((connection) => planned(connection, statement, values));
    } catch (error) {
      throw unavailable('The read failed', error);
    }
  }

  /**
   * Runs a write in one statement, which is durable once this resolves. Rejects with the driver's error, so
   * that the caller can check its SQLSTATE; see `writeFailure`.
   */
  write(statement: Statement, values: readonly unknown[]): Promise<readonly Row[]> {
    return withRetries(() => this.#writers.use((connection) => connection.run(statement, values)));
  }

  /** Runs a write of several statements in one transaction (see `Connection`). Rejects as `write` does. */
  transaction(steps: Steps, then?: MakeSteps): Promise<readonly (readonly Row[])[]> {
    return withRetries(() => this.#writers.use((connection) => connection.transaction(steps, then)));
  }

  /** Runs a write of which later statements depend on earlier ones (see `Connection`). Rejects as `write` does. */
  session(work: Parameters<Connection['session']>[0]): Promise<void> {
    return withRetries(() => this.#writers.use((connection) => connection.session(work)));
  }

  /** Runs reads of one snapshot, alone on a connection, which `work` sends one after another. */
  async snapshot(work: (run: Connection['run']) => Promise<void>): Promise<void> {
    try {
      await this.#writers.use((connection) =>
        connection.session((run) => work(run).then(() => true), 'ISOLATION LEVEL REPEATABLE READ READ ONLY'),
      );
    } catch (error) {
      throw unavailable('The read failed', error);
    }
  }

  /** Replaces the connections that are not `wanted` any more, once their statements have ended. */
  async replace(wanted: (connection: Connection) => Promise<boolean>): Promise<void> {
    await Promise.all([this.#readers.replace(wanted), this.#writers.replace(wanted)]);
  }

  /** Calls `work` with each open connection that is not in a transaction, and opens the first ones. */
  async each(work: (connection: Connection) => Promise<void>): Promise<void> {
    await Promise.all([this.#readers.each(work), this.#writers.each(work)]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#readers[Symbol.asyncDispose](), this.#writers[Symbol.asyncDispose]()]);
  }
}

/**
 * Opens a connection that uses generic plans: planning a claim takes longer than claiming a few jobs, and the
 * planner would choose custom plans, because it expects ten values in an array and a tenth of the rows under
 * a limit.
 */
async function openForWrites(open: () => Promise<Connection>): Promise<Connection> {
  const connection = await open();
  await connection.run({ text: 'SET plan_cache_mode = force_generic_plan' }, undefined);
  return connection;
}

/** Runs a statement; one without a name is planned for its values. */
async function planned(
  connection: Connection,
  statement: Statement,
  values: readonly unknown[],
): Promise<readonly Row[]> {
  if (statement.name !== undefined) return connection.run(statement, values);
  const mode = { text: 'SET LOCAL plan_cache_mode = auto' };
  const [, rows = []] = await connection.transaction([
    [mode, []],
    [statement, values],
  ]);
  return rows;
}

/** The error to return for a failed write: OutcomeUnknownError if it may have been stored. */
export function writeFailure(error: unknown): StoreUnavailableError {
  // Not retried, because the write may already be stored.
  if (error instanceof UnconfirmedError) {
    return outcomeUnknown(
      'The write was stored, but no replica has confirmed it, so its outcome is unknown',
      error,
    );
  }
  if (isOutcomeUnknown(error)) {
    return outcomeUnknown('The server did not answer the write, so its outcome is unknown', error);
  }
  return unavailable('The write failed', error);
}

function outcomeUnknown(what: string, error: unknown): OutcomeUnknownError {
  return new OutcomeUnknownError(`${what}: ${describeFault(error)}`, { cause: error });
}

function unavailable(what: string, error: unknown): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error;
  return new StoreUnavailableError(`${what}: ${describeFault(error)}`, { cause: error });
}

/**
 * Retries a write that the server rolled back because of a concurrent one, and one of which the server has run
 * nothing. After other errors it may have been stored.
 */
async function withRetries<T>(work: () => Promise<T>): Promise<T> {
  const began = performance.now();
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      const mayRetry = isLocked(error)
        ? performance.now() - began < LOCK_RETRIES
        : (isTransient(error) || isNotSent(error)) && attempt <= RETRIES.max;
      if (!mayRetry) throw error;
      await delay(Math.random() * RETRIES.wait);
    }
  }
}

/**
 * A wait is counted in this many parts: a process that was suspended loses only one of them, and reads the
 * answers that arrived meanwhile before it refuses a statement.
 */
const WAIT_PARTS = 5;
/** Delay before retrying to open a connection after a failure, in milliseconds. */
const RETRY = { min: 50, max: 150 };
/** Interval of the checks for connections that do not answer, in milliseconds. */
const TIMEOUT_CHECK_INTERVAL = 250;
/** If every connection has this many statements in flight, the pool opens another one. */
const BUSY = 2;

/** Options of a pool. */
interface PoolOptions {
  /** Opens a connection. */
  open(): Promise<Connection>;
  /** Whether a connection may be used now, or one that is yet to be opened. */
  allows(connection: Connection | undefined): boolean;
  /** Maximum number of connections. */
  readonly size: number;
  /** Maximum number of statements in flight per connection; 1 disables pipelining. */
  readonly depth: number;
  /** Maximum time that a statement waits for a connection, in milliseconds. */
  readonly maxWait: number;
  /** A connection that does not answer for this long is destroyed, in milliseconds. */
  readonly timeout: number;
  /** Called when the server is reachable again after a failure. */
  onReconnect?(): void;
}

interface Waiting {
  start(connection: Connection): void;
  refuse(error: StoreUnavailableError): void;
}

/**
 * A bounded number of connections, opened on demand. A statement waits at most `maxWait` for one; once the
 * server has been unreachable for that long, statements fail at once. The pool reconnects automatically.
 * States: up (a connection is open, or none was needed yet) <-> down (the last attempt failed); closed is
 * final.
 */
class Pool implements AsyncDisposable {
  readonly #options: PoolOptions;
  readonly #timeoutCheck: NodeJS.Timeout;
  #connections: readonly Connection[] = [];
  #waiting: Waiting[] = [];
  #opening = 0;
  #retry: NodeJS.Timeout | undefined;
  /** Why the server is unreachable, and since when, in milliseconds; undefined while it is reachable. */
  #down: { readonly cause: unknown; readonly since: number } | undefined;
  #closed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#timeoutCheck = setInterval(() => this.#abortSilent(), TIMEOUT_CHECK_INTERVAL);
    this.#timeoutCheck.unref();
  }

  /**
   * Runs work on a connection, immediately or once one is free. Fails as the work does, or with
   * StoreUnavailableError if no connection becomes available.
   */
  use<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const free = this.#pick();
    if (free !== undefined) return work(free);
    const { allows } = this.#options;
    if (!allows(undefined) && !this.#connections.some(allows))
      return Promise.reject(new StoreUnavailableError('No connection may be used now'));
    if (this.#closed) return Promise.reject(new StoreUnavailableError('The database is closed'));
    const downFor = this.#down === undefined ? 0 : performance.now() - this.#down.since;
    if (this.#connections.length === 0 && downFor > this.#options.maxWait)
      return Promise.reject(this.#unavailable());
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const waiting: Waiting = {
      start(connection) {
        clearInterval(timer);
        work(connection).then(resolve, reject);
      },
      refuse(error) {
        clearInterval(timer);
        reject(error);
      },
    };
    let left = WAIT_PARTS;
    const timer = setInterval(() => {
      if (--left > 0) return;
      clearInterval(timer);
      this.#waiting = this.#waiting.filter((other) => other !== waiting);
      reject(this.#unavailable());
      // Later statements fail at once.
      if (this.#down !== undefined) this.#down = { ...this.#down, since: Number.NEGATIVE_INFINITY };
    }, this.#options.maxWait / WAIT_PARTS);
    this.#waiting.push(waiting);
    return promise;
  }

  /** Leaves the state down, because another pool has reached the server. */
  resume(): void {
    if (this.#down === undefined) return;
    this.#down = undefined;
    clearTimeout(this.#retry);
    this.#retry = undefined;
    this.#grow();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timeoutCheck);
    clearTimeout(this.#retry);
    for (const { refuse } of this.#waiting.splice(0))
      refuse(new StoreUnavailableError('The database is closed'));
    await Promise.all(this.#connections.map((connection) => connection[Symbol.asyncDispose]()));
  }

  async replace(wanted: (connection: Connection) => Promise<boolean>): Promise<void> {
    for (const connection of this.#connections) {
      // One that runs a transaction would ask within it; the next call asks again.
      if (this.#options.depth === 1 && connection.load > 0) continue;
      const isWanted = await wanted(connection).catch(() => true);
      if (isWanted || !this.#connections.includes(connection)) continue;
      if (this.#options.depth === 1 && connection.load > 0) continue;
      this.#connections = this.#connections.filter((other) => other !== connection);
      void connection[Symbol.asyncDispose]().catch(() => {});
    }
  }

  async each(work: (connection: Connection) => Promise<void>): Promise<void> {
    if (this.#connections.length === 0) this.#grow();
    const free = this.#connections.filter(({ load }) => this.#options.depth > 1 || load === 0);
    await Promise.all(free.map(work));
  }

  /** The connection with the fewest statements, if it can take one more. */
  #pick(): Connection | undefined {
    let best: Connection | undefined;
    for (const connection of this.#connections) {
      if (!this.#options.allows(connection)) continue;
      if (best === undefined || connection.load < best.load) best = connection;
      if (best.load === 0) return best;
    }
    if (best === undefined || best.load >= Math.min(BUSY, this.#options.depth)) this.#grow();
    return best !== undefined && best.load < this.#options.depth ? best : undefined;
  }

  #unavailable(): StoreUnavailableError {
    const { cause } = this.#down ?? {};
    const { maxWait } = this.#options;
    if (this.#connections.length > 0) {
      const busy = `All connections to the database were busy for ${maxWait} ms`;
      const more = cause === undefined ? '' : `, and no more could be opened: ${describeFault(cause)}`;
      return new StoreUnavailableError(busy + more, { cause });
    }
    const reason = cause === undefined ? `no answer for ${maxWait} ms` : describeFault(cause);
    return new StoreUnavailableError(`The database cannot be reached: ${reason}`, { cause });
  }

  /** Opens one more connection, within `size`. */
  #grow(): void {
    if (this.#closed || this.#retry !== undefined) return;
    if (this.#connections.length + this.#opening >= this.#options.size) return;
    this.#opening++;
    this.#options
      .open()
      .then(
        (connection) => this.#add(connection),
        (cause: unknown) => this.#failed(cause),
      )
      .finally(() => this.#opening--);
  }

  #add(connection: Connection): void {
    if (this.#closed) {
      void connection[Symbol.asyncDispose]();
      return;
    }
    const wasDown = this.#down !== undefined;
    this.#down = undefined;
    this.#connections = [...this.#connections, connection];
    connection.onChange = () => this.#changed(connection);
    this.#changed(connection);
    if (wasDown) this.#options.onReconnect?.();
  }

  #failed(cause: unknown): void {
    if (this.#closed) return;
    this.#down = { cause, since: this.#down?.since ?? performance.now() };
    this.#retry ??= setTimeout(
      () => {
        this.#retry = undefined;
        if (this.#connections.length === 0 || this.#waiting.length > 0) this.#grow();
      },
      RETRY.min + Math.random() * (RETRY.max - RETRY.min),
    );
  }

  /** Removes a lost connection, and starts waiting statements on free ones. */
  #changed(connection: Connection): void {
    if (connection.lost) {
      this.#connections = this.#connections.filter((other) => other !== connection);
      // Reconnects without waiting for the next statement.
      if (this.#connections.length === 0) this.#grow();
    }
    while (this.#waiting.length > 0) {
      const free = this.#pick();
      if (free === undefined) return;
      this.#waiting.shift()?.start(free);
    }
  }

  #abortSilent(): void {
    for (const connection of this.#connections) {
      if (connection.silence > this.#options.timeout) {
        connection.abort(`no answer for ${this.#options.timeout} ms`);
      }
    }
  }
}
