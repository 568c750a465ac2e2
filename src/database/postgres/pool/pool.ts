import { StoreUnavailableError } from '../../../core/store-errors.ts';
import type { Connection, Row, Statement } from './connection.ts';
import { describeFault } from './faults.ts';

/** How long a statement waits for a connection, in milliseconds. */
const MAX_WAIT = 500;
/** Between two attempts to open a connection after one that failed, in milliseconds. */
const RETRY = { min: 100, max: 250 };
/** How often to look for connections that do not answer, in milliseconds. */
const WATCH_INTERVAL = 250;
/** A connection that has more statements under way is joined by another one while there may be more. */
const BUSY = 8;

export interface PoolOptions {
  /** Opens a connection. */
  open(): Promise<Connection>;
  /** The most connections. */
  readonly size: number;
  /** The most statements under way on one connection; with 1 each of them has it for itself. */
  readonly depth: number;
  /** A connection that gives no answer for so long is given up, in milliseconds. */
  readonly patience: number;
  /** Told when a server that was away has been reached again. */
  onBack?(): void;
}

interface Waiting {
  start(connection: Connection): void;
  refuse(error: StoreUnavailableError): void;
}

/**
 * A bounded number of connections, opened as they are needed. Nobody waits for one longer than MAX_WAIT; when the
 * server has been gone for longer than that, nobody waits at all. The pool tries to reach it by itself until it is
 * back. States: up (a connection is open, or none was needed yet) <-> down (the last attempt failed); closed is final.
 */
export class Pool implements AsyncDisposable {
  readonly #options: PoolOptions;
  readonly #watch: NodeJS.Timeout;
  #connections: readonly Connection[] = [];
  #waiting: Waiting[] = [];
  #opening = 0;
  #retry: NodeJS.Timeout | undefined;
  /** Why the server cannot be reached, and since when, in milliseconds. */
  #down: { readonly cause: unknown; readonly since: number } | undefined;
  #closed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#watch = setInterval(() => this.#giveUpSilent(), WATCH_INTERVAL);
    this.#watch.unref();
  }

  /** Runs a statement. Fails as the connection does, or with StoreUnavailableError when none could be had. */
  run(statement: Statement, values: readonly unknown[]): Promise<readonly Row[]> {
    const connection = this.#pick();
    if (connection !== undefined) return connection.run(statement, values);
    return this.#later((late) => late.run(statement, values));
  }

  /** Runs statements that happen all or none. Fails as `run` does. */
  transaction(
    steps: readonly (readonly [Statement, readonly unknown[]])[],
  ): Promise<readonly (readonly Row[])[]> {
    const connection = this.#pick();
    if (connection !== undefined) return connection.transaction(steps);
    return this.#later((late) => late.transaction(steps));
  }

  /** Says that somebody else has reached the server: whoever comes waits for a connection again. */
  serverIsBack(): void {
    if (this.#down === undefined) return;
    this.#down = undefined;
    clearTimeout(this.#retry);
    this.#retry = undefined;
    this.#grow();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    clearInterval(this.#watch);
    clearTimeout(this.#retry);
    for (const { refuse } of this.#waiting.splice(0))
      refuse(new StoreUnavailableError('The database is closed'));
    await Promise.all(this.#connections.map((connection) => connection[Symbol.asyncDispose]()));
  }

  /** The connection with the least to do, when it can take one more statement. */
  #pick(): Connection | undefined {
    let best: Connection | undefined;
    for (const connection of this.#connections) {
      if (best === undefined || connection.load < best.load) best = connection;
      if (best.load === 0) return best;
    }
    if (best === undefined || best.load >= Math.min(BUSY, this.#options.depth)) this.#grow();
    return best !== undefined && best.load < this.#options.depth ? best : undefined;
  }

  #later<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    if (this.#closed) return Promise.reject(new StoreUnavailableError('The database is closed'));
    const goneFor = this.#down === undefined ? 0 : performance.now() - this.#down.since;
    if (this.#connections.length === 0 && goneFor > MAX_WAIT) return Promise.reject(this.#unavailable());
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const waiting: Waiting = {
      start(connection) {
        clearTimeout(timer);
        work(connection).then(resolve, reject);
      },
      refuse(error) {
        clearTimeout(timer);
        reject(error);
      },
    };
    const timer = setTimeout(() => {
      this.#waiting = this.#waiting.filter((other) => other !== waiting);
      reject(this.#unavailable());
      // Nobody else waits in vain.
      if (this.#down !== undefined) this.#down = { ...this.#down, since: Number.NEGATIVE_INFINITY };
    }, MAX_WAIT);
    this.#waiting.push(waiting);
    return promise;
  }

  #unavailable(): StoreUnavailableError {
    const { cause } = this.#down ?? {};
    if (this.#connections.length > 0) {
      const busy = `All connections to the database were busy for ${MAX_WAIT} ms`;
      const more = cause === undefined ? '' : `, and there are no more: ${describeFault(cause)}`;
      return new StoreUnavailableError(busy + more, { cause });
    }
    const reason = cause === undefined ? `no answer for ${MAX_WAIT} ms` : describeFault(cause);
    return new StoreUnavailableError(`The database cannot be reached: ${reason}`, { cause });
  }

  /** Opens one more connection, if there may be one. */
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
    if (wasDown) this.#options.onBack?.();
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

  /** Takes out a connection that has ended, and gives what waits to one that can take it. */
  #changed(connection: Connection): void {
    if (connection.lost) {
      this.#connections = this.#connections.filter((other) => other !== connection);
      // Nobody has to ask first for the way back to be looked for.
      if (this.#connections.length === 0) this.#grow();
    }
    while (this.#waiting.length > 0) {
      const free = this.#pick();
      if (free === undefined) return;
      this.#waiting.shift()?.start(free);
    }
  }

  #giveUpSilent(): void {
    for (const connection of this.#connections) {
      if (connection.silence > this.#options.patience) {
        connection.abort(`no answer for ${this.#options.patience} ms`);
      }
    }
  }
}
