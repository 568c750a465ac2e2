import { type Replica, serverUrls } from '../database.ts';
import type { Connection, Row, Statement } from '../postgres-pool/connection.ts';
import { connector } from '../postgres-pool/connector.ts';
import { Server, type ServerSize } from '../postgres-pool/server.ts';

/** Time between two looks whether the servers of the replicas still are some, in milliseconds. */
const LOOK = 5_000;
/** Five connections, because a replica only serves reads of users. */
const REPLICA: ServerSize = { shared: 3, alone: 2 };

/**
 * Reads users from the replica if it answers and the process has not written recently; otherwise from the
 * primary.
 */
export class UserReads implements AsyncDisposable {
  readonly #primary: Server;
  readonly #replica: Server | undefined;
  readonly #readYourWrites: number;
  readonly #timer: NodeJS.Timeout | undefined;
  #wroteAt = Number.NEGATIVE_INFINITY;

  constructor(primary: Server, replica: Replica | undefined) {
    this.#primary = primary;
    this.#readYourWrites = replica?.readYourWrites ?? 0;
    if (replica === undefined) return;
    const connect = connector(replica.url, { readOnly: true });
    const reads = new Server(connect, REPLICA);
    this.#replica = reads;
    if (serverUrls(replica.url).length > 1)
      this.#timer = setInterval(() => void leavePrimary(reads, connect).catch(() => {}), LOOK).unref();
  }

  /** Must be called after each write of a user by this process. */
  wrote(): void {
    this.#wroteAt = performance.now();
  }

  /** Runs a read; a `long` one runs alone on a connection. Fails with StoreUnavailableError. */
  run(statement: Statement, values: readonly unknown[], long = false): Promise<readonly Row[]> {
    const from = (server: Server) =>
      long ? server.readAlone(statement, values) : server.read(statement, values);
    if (this.#replica === undefined || performance.now() - this.#wroteAt < this.#readYourWrites) {
      return from(this.#primary);
    }
    return from(this.#replica).catch(() => from(this.#primary));
  }

  /** Runs reads of one snapshot, which `work` sends, perhaps once more. Fails with StoreUnavailableError. */
  snapshot(work: (run: Connection['run']) => Promise<void>): Promise<void> {
    if (this.#replica === undefined || performance.now() - this.#wroteAt < this.#readYourWrites) {
      return this.#primary.snapshot(work);
    }
    return this.#replica.snapshot(work).catch(() => this.#primary.snapshot(work));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    await this.#replica?.[Symbol.asyncDispose]();
  }
}

/** Moves reads away from a server that has become the primary, if there is a replica. */
async function leavePrimary(reads: Server, connect: () => Promise<Connection>): Promise<void> {
  let isThere: Promise<boolean> | undefined;
  const hasReplica = async () => {
    await using connection = await connect();
    return connection.isReplica;
  };
  await reads.replace(async (connection) => {
    if (await connection.asksReplica()) return true;
    isThere ??= hasReplica();
    return !(await isThere);
  });
}
