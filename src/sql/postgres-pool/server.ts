import { setTimeout as delay } from 'node:timers/promises';
import { OutcomeUnknownError, StoreUnavailableError } from '../../core/errors.ts';
import { type Connection, type Row, STATEMENT_TIMEOUT, type Statement, type Steps } from './connection.ts';
import { describeFault, isLocked, isOutcomeUnknown, isTransient, UnconfirmedError } from './faults.ts';
import { Pool } from './pool.ts';

/** Maximum number of connections to a server. */
export interface ServerSize {
  /** Number of connections shared by short reads. */
  readonly shared: number;
  /** Number of connections that run one write or long read at a time. */
  readonly alone: number;
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

  constructor(open: () => Promise<Connection>, { shared, alone } = PRIMARY, maxWait = SERVICE_WAIT) {
    this.maxWait = maxWait;
    this.#readers = new Pool({
      open,
      maxWait,
      size: shared,
      depth: READS_PER_CONNECTION,
      timeout: READ_TIMEOUT,
      onReconnect: () => this.#writers.resume(),
    });
    this.#writers = new Pool({
      open: () => openForWrites(open),
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
      if (!isOutcomeUnknown(error)) throw unavailable('The read failed', error);
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

  /** Runs a write of several statements in one transaction. Rejects as `write` does. */
  transaction(steps: Steps): Promise<readonly (readonly Row[])[]> {
    return withRetries(() => this.#writers.use((connection) => connection.transaction(steps)));
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
 * Retries a write that the server rolled back because of a concurrent one. After other errors it may have
 * been stored.
 */
async function withRetries<T>(work: () => Promise<T>): Promise<T> {
  const began = performance.now();
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      const mayRetry = isLocked(error)
        ? performance.now() - began < LOCK_RETRIES
        : isTransient(error) && attempt <= RETRIES.max;
      if (!mayRetry) throw error;
      await delay(Math.random() * RETRIES.wait);
    }
  }
}
