import type { Replica } from '../open-options.ts';
import type { Row, Statement } from './pool/connection.ts';
import { connector } from './pool/connector.ts';
import { Server, type ServerSize } from './pool/server.ts';

/** Five connections: a replica takes reads of users, and nothing else. */
const REPLICA: ServerSize = { shared: 3, alone: 2 };

/** Where users are read: from the replica, if there is one that has what this process wrote and that answers. */
export class UserReads implements AsyncDisposable {
  readonly #primary: Server;
  readonly #replica: Server | undefined;
  readonly #readYourWrites: number;
  #wroteAt = Number.NEGATIVE_INFINITY;

  constructor(primary: Server, replica: Replica | undefined) {
    this.#primary = primary;
    this.#readYourWrites = replica?.readYourWrites ?? 0;
    if (replica !== undefined) this.#replica = new Server(connector(replica.url, true), REPLICA);
  }

  /** Says that this process has written a user. */
  wrote(): void {
    this.#wroteAt = performance.now();
  }

  /** A read; a long one does not keep others waiting. Fails with StoreUnavailableError. */
  run(statement: Statement, values: readonly unknown[], long = false): Promise<readonly Row[]> {
    const from = (server: Server) =>
      long ? server.readAlone(statement, values) : server.read(statement, values);
    if (this.#replica === undefined || performance.now() - this.#wroteAt < this.#readYourWrites) {
      return from(this.#primary);
    }
    return from(this.#replica).catch(() => from(this.#primary));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#replica?.[Symbol.asyncDispose]();
  }
}
