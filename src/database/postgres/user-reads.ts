import type { Replica } from '../replica.ts';
import { type Row, STATEMENT_TIMEOUT, type Statement } from './connection.ts';
import { connector } from './connector.ts';
import { Pool } from './pool.ts';
import type { Server } from './server.ts';

/** Reads of users, short and long ones, share these. */
const CONNECTIONS = 5;
const DEPTH = 64;

/** Where users are read: from the replica, if there is one that has what this process wrote and that answers. */
export class UserReads implements AsyncDisposable {
  readonly #server: Server;
  readonly #replica: Pool | undefined;
  readonly #readYourWrites: number;
  #wroteAt = Number.NEGATIVE_INFINITY;

  constructor(server: Server, replica: Replica | undefined) {
    this.#server = server;
    this.#readYourWrites = replica?.readYourWrites ?? 0;
    if (replica === undefined) return;
    this.#replica = new Pool({
      open: connector(replica.url, true),
      size: CONNECTIONS,
      depth: DEPTH,
      patience: STATEMENT_TIMEOUT,
    });
  }

  /** Says that this process has written a user. */
  wrote(): void {
    this.#wroteAt = performance.now();
  }

  /** A read; a long one does not keep others waiting. Fails with StoreUnavailableError. */
  run(statement: Statement, values: readonly unknown[], long = false): Promise<readonly Row[]> {
    const primary = () =>
      long ? this.#server.readAlone(statement, values) : this.#server.read(statement, values);
    if (this.#replica === undefined) return primary();
    if (performance.now() - this.#wroteAt < this.#readYourWrites) return primary();
    return this.#replica.run(statement, values).catch(primary);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#replica?.[Symbol.asyncDispose]();
  }
}
