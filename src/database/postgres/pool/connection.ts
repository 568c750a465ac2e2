import pg from 'pg';
import { ConnectionLostError, describeFault, isStale, sqlState, UnconfirmedError } from './faults.ts';

/** How long a connection may take to open, in milliseconds. */
const CONNECT_TIMEOUT = 2_000;
/** How long the server works on a statement, in milliseconds. */
export const STATEMENT_TIMEOUT = 5_000;
/** How long a statement waits for another one's lock, in milliseconds. */
const LOCK_TIMEOUT = 1_000;
/** How long a goodbye may take, in milliseconds. */
const CLOSE_TIMEOUT = 1_000;
/** 64-bit integers; all of ours are below 2^53. */
const INT8 = 20;

/**
 * Every connection answers for durability: a commit is in the write-ahead log before it is answered. One that waits
 * for replicas to apply it stays as it is. All statements here have an index that fits; without statistics the planner
 * would walk through a table that was empty a minute ago.
 */
const SETTINGS = `
  SET statement_timeout = ${STATEMENT_TIMEOUT}; SET lock_timeout = ${LOCK_TIMEOUT};
  SET idle_in_transaction_session_timeout = ${STATEMENT_TIMEOUT}; SET client_min_messages = warning;
  SET enable_seqscan = off; SET jit = off;
  SELECT set_config('synchronous_commit', 'on', false)
  WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')`;

/**
 * The function of the server that waits for synchronous replicas; it warns when it is told to wait no longer. The text
 * of the warning is in the server's language.
 */
const SYNC_WAIT = 'SyncRepWaitForLSN';

const IS_COPY = { text: 'SELECT pg_is_in_recovery()' };

/** A statement; one with a name is prepared once on each connection. */
export interface Statement {
  readonly name?: string;
  readonly text: string;
}

/** A row, column by column. */
export type Row = readonly unknown[];

/** The server is one that only copies another one. */
export class ReadOnlyServerError extends Error {
  override readonly name = 'ReadOnlyServerError';
  readonly code = 'READ_ONLY_SERVER';
}

export interface ConnectionOptions {
  readonly url: string;
  /** Whether a server that only copies another one will do; default false. */
  readonly readOnly?: boolean;
}

/** One connection; statements that are run on it at the same time are sent at once and answered one after the other. */
export class Connection implements AsyncDisposable {
  /** Told when a statement has ended, and when the connection has. */
  onChange: () => void = () => {};
  /** Told of every message that another connection sends on a channel that this one listens to. */
  onNotification: (channel: string) => void = () => {};
  readonly #client: pg.Client;
  #load = 0;
  #progress = 0;
  #lost: Error | undefined;
  /** Whether the statement that is answered next was committed without the replicas that it should have waited for. */
  #unconfirmed = false;

  private constructor(client: pg.Client) {
    this.#client = client;
    client.on('error', (error) => this.#lose(error));
    client.on('notice', ({ routine }) => {
      if (routine === SYNC_WAIT) this.#unconfirmed = true;
    });
    client.on('end', () => this.#lose(new Error('The connection has ended')));
  }

  /** Opens a connection. Rejects with what the driver or the server says. */
  static async open({ url, readOnly = false }: ConnectionOptions): Promise<Connection> {
    const client = new pg.Client({
      connectionString: url,
      pipeline: true,
      keepAlive: true,
      fallback_application_name: 'portico',
      types: { getTypeParser: parserOf as typeof pg.types.getTypeParser },
    });
    const connection = new Connection(client);
    const timer = setTimeout(() => connection.abort(`no answer for ${CONNECT_TIMEOUT} ms`), CONNECT_TIMEOUT);
    try {
      await client.connect();
      const settings = connection.run({ text: SETTINGS }, undefined);
      const [, [row]] = await Promise.all([settings, connection.run(IS_COPY, undefined)]);
      if (row?.[0] === true && !readOnly) {
        throw new ReadOnlyServerError('the server is a replica that cannot be written to');
      }
    } catch (error) {
      connection.abort('It could not be opened');
      throw error;
    } finally {
      clearTimeout(timer);
    }
    const own = (client as unknown as { readonly processID: number }).processID;
    client.on('notification', ({ processId, channel }) => {
      if (processId !== own) connection.onNotification(channel);
    });
    return connection;
  }

  /** Statements under way. */
  get load(): number {
    return this.#load;
  }

  get lost(): boolean {
    return this.#lost !== undefined;
  }

  /** For how many milliseconds a statement has been waited for without any answer; 0 when none is. */
  get silence(): number {
    return this.#load === 0 ? 0 : performance.now() - this.#progress;
  }

  /**
   * Runs a statement; resolves to its rows. Rejects with the server's error, with ConnectionLostError when it was sent
   * and no answer came, or with UnconfirmedError. Without `values` the text may be several statements.
   */
  run({ name, text }: Statement, values: readonly unknown[] | undefined): Promise<readonly Row[]> {
    const { promise, resolve, reject } = Promise.withResolvers<readonly Row[]>();
    if (this.#load++ === 0) this.#progress = performance.now();
    const query: pg.QueryArrayConfig = { name, text, rowMode: 'array' };
    if (values !== undefined) query.values = values as unknown[];
    this.#client.query<unknown[]>(query, (error: Error | null, result) => {
      this.#load--;
      this.#progress = performance.now();
      const unconfirmed = this.#unconfirmed;
      this.#unconfirmed = false;
      if (error === null && unconfirmed) reject(new UnconfirmedError('its wait for a replica was cancelled'));
      else if (error === null) resolve(result.rows);
      else reject(this.#fault(error));
      this.onChange();
    });
    return promise;
  }

  /** Runs statements that happen all or none, sent at once; resolves to the rows of each of them. */
  async transaction(
    steps: readonly (readonly [Statement, readonly unknown[]])[],
  ): Promise<readonly (readonly Row[])[]> {
    const began = this.run({ text: 'BEGIN' }, undefined);
    const results = steps.map(([statement, values]) => this.run(statement, values));
    // After an error this rolls back.
    const ended = this.run({ text: 'COMMIT' }, undefined);
    const settled = await Promise.allSettled([began, ...results, ended]);
    const failure = settled.find((result) => result.status === 'rejected');
    if (failure !== undefined) throw failure.reason;
    return Promise.all(results);
  }

  /** Gives the connection up: whatever is under way on it fails with ConnectionLostError. */
  abort(reason: string): void {
    const error = new Error(reason);
    this.#client.connection.stream.destroy(error);
    this.#lose(error);
  }

  /** Says goodbye once the statements under way are answered, but waits for no server that is silent. */
  async [Symbol.asyncDispose](): Promise<void> {
    const timer = setTimeout(() => this.abort('The connection is closed'), CLOSE_TIMEOUT);
    await this.#client.end();
    clearTimeout(timer);
  }

  #fault(error: Error): Error {
    if (isStale(error)) this.abort('The connection is of no more use');
    if (sqlState(error) !== undefined) return error;
    return new ConnectionLostError(`The connection to the database was lost: ${describeFault(error)}`, {
      cause: error,
    });
  }

  #lose(error: Error): void {
    if (this.#lost !== undefined) return;
    this.#lost = error;
    this.onChange();
  }
}

/** The driver's own parsers, but for integers. */
function parserOf(type: number, format: 'text' | 'binary'): (value: string) => unknown {
  return type === INT8
    ? Number
    : (pg.types.getTypeParser(type, format as 'text') as (value: string) => unknown);
}
