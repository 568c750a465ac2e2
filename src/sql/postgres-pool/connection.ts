import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { DatabaseOpenError } from '../../core/errors.ts';

/** Timeout for opening a connection, in milliseconds. */
const CONNECT_TIMEOUT = 2_000;
/** Timeout of a statement on the server, in milliseconds. */
export const STATEMENT_TIMEOUT = 5_000;
/**
 * Timeout of one wait for another transaction's lock, in milliseconds. It is shorter than the server's
 * deadlock_timeout, so that deadlocks end soon; `Server` retries.
 */
const LOCK_TIMEOUT = 400;
/** Timeout for closing a connection, in milliseconds. */
const CLOSE_TIMEOUT = 1_000;
/** Type id of 64-bit integers; all values here are below 2^53. */
const INT8 = 20;

/**
 * Session settings. `synchronous_commit` is `on`, so that the server fsyncs a commit before it answers; the
 * stronger `remote_apply` is kept. Sequential scans are off, because every statement has an index, and with
 * stale statistics the planner would scan a table that was empty a minute ago. Read committed isolation is
 * required, because statements must see the latest rows after they get a lock.
 */
const SETTINGS = `
  SET statement_timeout = ${STATEMENT_TIMEOUT}; SET lock_timeout = ${LOCK_TIMEOUT};
  SET idle_in_transaction_session_timeout = ${STATEMENT_TIMEOUT}; SET client_min_messages = warning;
  SET enable_seqscan = off; SET jit = off;
  SET default_transaction_isolation = 'read committed';
  SELECT set_config('synchronous_commit', 'on', false)
  WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')`;

/**
 * The server function that waits for synchronous replicas. It warns if that wait is cancelled; the warning's
 * text is localised, the function's name is not.
 */
const SYNC_WAIT = 'SyncRepWaitForLSN';

const IS_REPLICA = { text: 'SELECT pg_is_in_recovery()' };

/** A statement; a named one is prepared once per connection. */
export interface Statement {
  readonly name?: string;
  readonly text: string;
}

/** Options for opening a connection. */
export interface ConnectOptions {
  /** Whether the server may be a replica. Default: false. */
  readonly readOnly?: boolean;
  /** Whether to check first that the connection has its own session. Default: false. */
  readonly checkSession?: boolean;
  /** The schema to use instead of the search path of the URL and the role. */
  readonly schema?: string | undefined;
}

/** The statements of a transaction, with their values. */
export type Steps = readonly (readonly [Statement, readonly unknown[]])[];

/** Makes further steps of the rows of the first ones. */
export type MakeSteps = (rows: readonly (readonly Row[])[]) => Steps;

/** A row as an array of columns. */
export type Row = readonly unknown[];

/** The server is a replica, but a primary is required. */
export class ReadOnlyServerError extends Error {
  override readonly name = 'ReadOnlyServerError';
  readonly code = 'READ_ONLY_SERVER';
}

/** One connection in pipeline mode: concurrent statements are sent at once and answered in order. */
export class Connection implements AsyncDisposable {
  /** Called when a statement ends or the connection is lost. */
  onChange: () => void = () => {};
  /** Called for each notification by another connection on a channel that this one listens to. */
  onNotification: (channel: string) => void = () => {};
  readonly #client: pg.Client;
  #load = 0;
  #progress = 0;
  #lost: Error | undefined;
  #isReplica = false;
  /** Whether no synchronous replica has confirmed the commit that is answered next. */
  #unconfirmed = false;

  private constructor(client: pg.Client) {
    this.#client = client;
    client.on('error', (error) => this.#lose(error));
    client.on('notice', ({ routine }) => {
      if (routine === SYNC_WAIT) this.#unconfirmed = true;
    });
    client.on('end', () => this.#lose(new Error('The connection was closed')));
  }

  /**
   * Opens a connection. Rejects with the error of the driver or the server, or with DatabaseOpenError if it
   * has no session of its own.
   */
  static async open(
    url: string,
    { readOnly = false, checkSession = false, schema }: ConnectOptions = {},
  ): Promise<Connection> {
    const config = { connectionString: url, keepAlive: true, fallback_application_name: 'portico' };
    const client = new pg.Client({
      ...config,
      pipeline: true,
      types: { getTypeParser: parserOf as typeof pg.types.getTypeParser },
    });
    const connection = new Connection(client);
    const timer = setTimeout(() => connection.abort(`no answer for ${CONNECT_TIMEOUT} ms`), CONNECT_TIMEOUT);
    try {
      await client.connect();
      if (checkSession) {
        // It takes some ten round trips behind a pooler.
        timer.refresh();
        await requireSession(client, () => connectBeside(config));
        timer.refresh();
      }
      // Poolers refuse a search path in the startup packet.
      const path = schema === undefined ? '' : `SET search_path = ${pg.escapeIdentifier(schema)};`;
      const settings = connection.run({ text: path + SETTINGS }, undefined);
      const [, [row]] = await Promise.all([settings, connection.run(IS_REPLICA, undefined)]);
      connection.#isReplica = row?.[0] === true;
      if (connection.#isReplica && !readOnly) {
        throw new ReadOnlyServerError('the server is a replica that cannot be written to');
      }
    } catch (error) {
      const lost = connection.#lost;
      connection.abort('The connection could not be opened');
      // The driver only tells that the connection is lost.
      throw lost !== undefined && sqlState(error) === undefined ? lost : error;
    } finally {
      clearTimeout(timer);
    }
    const own = (client as unknown as { readonly processID: number }).processID;
    client.on('notification', ({ processId, channel }) => {
      if (processId !== own) connection.onNotification(channel);
    });
    return connection;
  }

  /** Number of statements in flight. */
  get load(): number {
    return this.#load;
  }

  /** Whether the server was a replica when the connection was opened. */
  get isReplica(): boolean {
    return this.#isReplica;
  }

  /** Whether the server is a replica now: a connection outlives a promotion. */
  async asksReplica(): Promise<boolean> {
    const [row] = await this.run(IS_REPLICA, undefined);
    return row?.[0] === true;
  }

  get lost(): boolean {
    return this.#lost !== undefined;
  }

  /** Milliseconds since the last answer while statements are in flight; 0 if there are none. */
  get silence(): number {
    return this.#load === 0 ? 0 : performance.now() - this.#progress;
  }

  /**
   * Runs a statement; resolves to its rows. Rejects with the server's error, with ConnectionLostError if no
   * answer arrived, or with UnconfirmedError. Without `values`, the text may contain several statements.
   */
  run({ name, text }: Statement, values: readonly unknown[] | undefined): Promise<readonly Row[]> {
    if (this.lost || !this.#client.connection.stream.writable)
      return Promise.reject(new NotSentError('The connection to the database was lost before', this.#lost));
    const { promise, resolve, reject } = Promise.withResolvers<readonly Row[]>();
    if (this.#load++ === 0) this.#progress = performance.now();
    const query: pg.QueryArrayConfig = { name, text, rowMode: 'array' };
    if (values !== undefined) query.values = values as unknown[];
    this.#client.query<unknown[]>(query, (error: Error | null, result) => {
      this.#load--;
      this.#progress = performance.now();
      const unconfirmed = this.#unconfirmed;
      this.#unconfirmed = false;
      if (error === null && unconfirmed)
        reject(new UnconfirmedError('the wait for a synchronous replica was cancelled'));
      else if (error === null) resolve(result.rows);
      else reject(this.#fault(error));
      this.onChange();
    });
    return promise;
  }

  /**
   * Runs statements in one transaction, pipelined; resolves to the rows of each. `then` makes further
   * statements of these rows.
   */
  transaction(steps: Steps, then?: MakeSteps): Promise<readonly (readonly Row[])[]> {
    return then === undefined ? this.#transaction(steps) : this.#held(() => this.#transaction(steps, then));
  }

  async #transaction(steps: Steps, then?: MakeSteps): Promise<readonly (readonly Row[])[]> {
    const run = (all: Steps) => all.map(([statement, values]) => this.run(statement, values));
    const results = [this.run({ text: 'BEGIN' }, undefined), ...run(steps)];
    if (then !== undefined) {
      const first = await Promise.allSettled(results);
      const rows = first.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
      if (rows.length === first.length) results.push(...run(then(rows.slice(1))));
    }
    // After a failure, COMMIT rolls the transaction back.
    results.push(this.run({ text: 'COMMIT' }, undefined));
    const settled = await Promise.allSettled(results);
    const failed = settled.findIndex((result) => result.status === 'rejected');
    const [first, last] = [settled[failed], settled.at(-1)];
    // Without its COMMIT, the transaction has changed nothing.
    if (last?.status === 'rejected' && isNotSent(last.reason)) throw last.reason;
    if (first?.status === 'rejected') throw failed === 0 ? atBegin(first.reason) : first.reason;
    return (await Promise.all(results)).slice(1, -1);
  }

  /**
   * Runs statements in one transaction that `work` sends one after another. Commits if it resolves to true;
   * rolls back otherwise. `mode` is that of the transaction.
   */
  session(work: (run: Connection['run']) => Promise<boolean>, mode = ''): Promise<void> {
    return this.#held(async () => {
      const begun = this.run({ text: `BEGIN ${mode}` }, undefined).catch((error: unknown) => {
        throw atBegin(error);
      });
      let commits = false;
      try {
        [, commits] = await Promise.all([begun, work((statement, values) => this.run(statement, values))]);
      } finally {
        await this.run({ text: commits ? 'COMMIT' : 'ROLLBACK' }, undefined);
      }
    });
  }

  /**
   * Counts as a statement in flight as long as `work` runs: a pool would otherwise lend the connection between its
   * statements, and the COMMIT of another write would end its transaction.
   */
  async #held<T>(work: () => Promise<T>): Promise<T> {
    if (this.#load++ === 0) this.#progress = performance.now();
    try {
      return await work();
    } finally {
      this.#load--;
      this.onChange();
    }
  }

  /** Destroys the connection; statements in flight fail with ConnectionLostError. */
  abort(reason: string): void {
    const error = new Error(reason);
    this.#client.connection.stream.destroy(error);
    this.#lose(error);
  }

  /** Closes the connection after the statements in flight, or after `CLOSE_TIMEOUT`. */
  async [Symbol.asyncDispose](): Promise<void> {
    const timer = setTimeout(() => this.abort('The connection is closed'), CLOSE_TIMEOUT);
    await this.#client.end();
    clearTimeout(timer);
  }

  #fault(error: Error): Error {
    if (isStale(error)) this.abort('The connection is no longer usable');
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

/** Opens a second connection, within the timeout for opening the first. */
async function connectBeside(config: pg.ClientConfig): Promise<pg.Client> {
  const client = new pg.Client({
    ...config,
    connectionTimeoutMillis: CONNECT_TIMEOUT,
    query_timeout: CONNECT_TIMEOUT,
  });
  client.on('error', () => {});
  await client.connect();
  return client;
}

/** The driver's parsers, except that 64-bit integers become numbers. */
function parserOf(type: number, format: 'text' | 'binary'): (value: string) => unknown {
  return type === INT8
    ? Number
    : (pg.types.getTypeParser(type, format as 'text') as (value: string) => unknown);
}

/** The order of the queries; with it, a pooler that reuses backends as a stack or in rotation is detected. */
const ORDER = ['a', 'b', 'a', 'a', 'b', 'b', 'a'] as const;

const SHARED =
  'a pooler such as PgBouncer in transaction or statement mode is between this process and the server, and gives each transaction another session. Use session mode (pool_mode = session), or name the server itself in the URL.';

/**
 * Throws DatabaseOpenError if a connection does not have its own session. A client connected directly to the
 * server knows its backend's process id. Behind a pooler that id differs; then a second connection is opened,
 * and both must keep their own backends and session settings while they are queried alternately. The setting
 * used for this has no other effect.
 */
async function requireSession(client: pg.Client, connect: () => Promise<pg.Client>): Promise<void> {
  const { processID } = client as unknown as { readonly processID: number };
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  if (rows[0]?.pid === processID) return;
  const other = await connect();
  try {
    const ask = { a: await marked(client), b: await marked(other) };
    const first = { a: await ask.a(), b: await ask.b() };
    let kept = first.a !== undefined && first.b !== undefined && first.a !== first.b;
    for (const name of ORDER) kept &&= (await ask[name]()) === first[name];
    if (!kept) throw new DatabaseOpenError(SHARED);
  } finally {
    await other.end();
  }
}

/**
 * Marks a session; the returned function resolves to its backend's process id, or undefined if the mark is
 * missing.
 */
async function marked(client: pg.Client): Promise<() => Promise<number | undefined>> {
  const mark = randomUUID();
  await client.query(`SET portico.session = '${mark}'`);
  return async () => {
    const { rows } = await client.query<{ pid: number; mark: string | null }>(
      `SELECT pg_backend_pid() AS pid, current_setting('portico.session', true) AS mark`,
    );
    return rows[0]?.mark === mark ? rows[0].pid : undefined;
  };
}

/** Nothing was sent, or the server refused to begin the transaction: the statement can be sent again. */
class NotSentError extends Error {
  override readonly name = 'NotSentError';
  readonly code = 'NOT_SENT';

  constructor(what: string, cause: unknown) {
    super(cause === undefined ? what : `${what}: ${describeFault(cause)}`, { cause });
  }
}

/**
 * Errors that end a connection: of a pooler, too many connections, the end of the server or of the session. A server
 * that answers BEGIN with one of them runs none of the statements behind it.
 */
const ENDS = /^(?:08|53300|57P0)/;

/** The error of a BEGIN. */
function atBegin(error: unknown): unknown {
  if (!ENDS.test(sqlState(error) ?? '')) return error;
  return new NotSentError('The server refused to begin a transaction', error);
}

/** The connection was lost while a statement was in flight: its outcome is unknown. */
class ConnectionLostError extends Error {
  override readonly name = 'ConnectionLostError';
  readonly code = 'CONNECTION_LOST';
}

/** The server has committed a statement, but no synchronous replica has confirmed it. */
export class UnconfirmedError extends Error {
  override readonly name = 'UnconfirmedError';
  readonly code = 'UNCONFIRMED';
}

/**
 * Error classes (postgresql.org/docs/current/errcodes-appendix.html) after which a statement may have been
 * committed: connection, resources, operator intervention, system, internal.
 */
const UNKNOWN = /^(?:08|53|57P|58|XX)/;
const LOCK_NOT_AVAILABLE = '55P03';
/** serialization_failure and deadlock_detected: rolled back, and likely to succeed when retried. */
const TRANSIENT: ReadonlySet<unknown> = new Set(['40001', '40P01']);
/**
 * Errors after which a new connection may work: operator_intervention that ends the connection, idle
 * transaction timeout, read_only_sql_transaction, and lost prepared statements.
 */
const STALE = /^(?:57P|25P03|25006|26000|0A000)/;
/** data_exception, integrity_constraint_violation, program_limit_exceeded: the values are invalid. */
const VALUES = /^(?:22|23|54)/;

/** The SQLSTATE of an error that the server reported; undefined for any other error. */
export function sqlState(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

/** Whether a failed statement may have been committed, or was committed but may be lost in a failover. */
export function isOutcomeUnknown(error: unknown): boolean {
  const state = sqlState(error);
  if (state !== undefined) return UNKNOWN.test(state);
  return error instanceof ConnectionLostError || error instanceof UnconfirmedError;
}

/** Whether the server has run nothing of a failed statement or transaction. */
export function isNotSent(error: unknown): boolean {
  return error instanceof NotSentError;
}

/** Whether the statement was rolled back because of a concurrent one. */
export function isTransient(error: unknown): boolean {
  return TRANSIENT.has(sqlState(error));
}

/** Whether the statement was rolled back after waiting too long for a lock. */
export function isLocked(error: unknown): boolean {
  return sqlState(error) === LOCK_NOT_AVAILABLE;
}

/** Whether the connection is unusable after this error. */
function isStale(error: unknown): boolean {
  return STALE.test(sqlState(error) ?? '');
}

/** Whether a statement failed because of its values. */
export function isValueError(error: unknown): boolean {
  return VALUES.test(sqlState(error) ?? '');
}

/** The message of an error, or its code: the AggregateError of a failed connection has no message. */
export function describeFault(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as { readonly code?: unknown };
  return error.message || String(code ?? error.name);
}
