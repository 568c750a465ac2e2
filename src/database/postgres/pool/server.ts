import { setTimeout as delay } from 'node:timers/promises';
import { OutcomeUnknownError, StoreUnavailableError } from '../../../core/store-errors.ts';
import { type Connection, type Row, STATEMENT_TIMEOUT, type Statement } from './connection.ts';
import { describeFault, isOutcomeUnknown, isPassing, UnconfirmedError } from './faults.ts';
import { Pool } from './pool.ts';

/** The most connections to a server. */
export interface ServerSize {
  /** Those that short reads share. */
  readonly shared: number;
  /** Those that a write or a long read has for itself. */
  readonly alone: number;
}

/** Ten connections, with the one of the bell. */
const PRIMARY: ServerSize = { shared: 3, alone: 6 };
/** Short reads share a connection: they are sent without waiting for each other's answers. */
const READS_PER_CONNECTION = 256;
/** A short read that has no answer for so long gets none, in milliseconds. */
const READ_PATIENCE = 2_000;
/** The server ends a long statement by itself before that, in milliseconds. */
const WRITE_PATIENCE = STATEMENT_TIMEOUT + 1_000;
/** What the server rolls back for the sake of others is tried again so often, after up to so many milliseconds. */
const RETRIES = { most: 4, wait: 40 };

/** The server as the stores use it. What fails here fails with StoreUnavailableError; its cause is the driver's error. */
export class Server implements AsyncDisposable {
  readonly #readers: Pool;
  readonly #writers: Pool;

  constructor(open: () => Promise<Connection>, { shared, alone } = PRIMARY) {
    this.#readers = new Pool({
      open,
      size: shared,
      depth: READS_PER_CONNECTION,
      patience: READ_PATIENCE,
      onBack: () => this.#writers.serverIsBack(),
    });
    this.#writers = new Pool({
      open,
      size: alone,
      depth: 1,
      patience: WRITE_PATIENCE,
      onBack: () => this.#readers.serverIsBack(),
    });
  }

  /** A short read. */
  read(statement: Statement, values: readonly unknown[]): Promise<readonly Row[]> {
    return this.#readers.run(statement, values).catch((error: unknown) => {
      // A read can be asked again; the connection that was lost is no longer among those of the pool.
      if (!isOutcomeUnknown(error)) throw unavailable('The read failed', error);
      return this.#readers.run(statement, values).catch((again: unknown) => {
        throw unavailable('The read failed', again);
      });
    });
  }

  /** A read that may take its time. */
  async readAlone(statement: Statement, values: readonly unknown[]): Promise<readonly Row[]> {
    try {
      return await this.#writers.run(statement, values);
    } catch (error) {
      throw unavailable('The read failed', error);
    }
  }

  /**
   * A write in one statement, durable once this resolves. Rejects with the server's own error too, so that the caller
   * can tell what it was; see `writeFailure`.
   */
  write(statement: Statement, values: readonly unknown[]): Promise<readonly Row[]> {
    return tryAgain(() => this.#writers.run(statement, values));
  }

  /** A write in several statements that happen all or none. Rejects as `write` does. */
  transaction(
    steps: readonly (readonly [Statement, readonly unknown[]])[],
  ): Promise<readonly (readonly Row[])[]> {
    return tryAgain(() => this.#writers.transaction(steps));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#readers[Symbol.asyncDispose](), this.#writers[Symbol.asyncDispose]()]);
  }
}

/** What a caller is told of a write that failed. */
export function writeFailure(error: unknown): StoreUnavailableError {
  // It is not tried again: it may be stored, and then it would be twice.
  if (error instanceof UnconfirmedError) {
    return unknown('The write was stored and no replica has confirmed it, so its outcome is unknown', error);
  }
  if (isOutcomeUnknown(error)) {
    return unknown('The write was sent and not answered, so its outcome is unknown', error);
  }
  return unavailable('The write failed', error);
}

function unknown(what: string, error: unknown): OutcomeUnknownError {
  return new OutcomeUnknownError(`${what}: ${describeFault(error)}`, { cause: error });
}

function unavailable(what: string, error: unknown): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error;
  return new StoreUnavailableError(`${what}: ${describeFault(error)}`, { cause: error });
}

/** Tries again what the server has rolled back for the sake of others; nothing else, because it may be stored. */
async function tryAgain<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!isPassing(error) || attempt > RETRIES.most) throw error;
      await delay(Math.random() * RETRIES.wait);
    }
  }
}
