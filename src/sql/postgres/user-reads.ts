import { type Replica, serverUrls } from '../database.ts';
import { type Connection, type Row, type Statement, sqlState } from '../postgres-pool/connection.ts';
import { connector } from '../postgres-pool/connector.ts';
import { ReplicaProof } from '../postgres-pool/replica-proof.ts';
import { Server, type ServerSize } from '../postgres-pool/server.ts';

/** Time between two looks whether the servers of the replicas still are some, in milliseconds. */
const LOOK = 5_000;
/** Five connections, because a replica only serves reads of users. */
const REPLICA: ServerSize = { shared: 3, alone: 2 };

/**
 * Reads users from the replica if it answers, has all that the process has written, and the process has not written
 * recently; otherwise from the primary.
 */
export class UserReads implements AsyncDisposable {
  readonly #primary: Server;
  readonly #replica: Server | undefined;
  readonly #readYourWrites: number;
  readonly #timer: NodeJS.Timeout | undefined;
  /** Undefined without a replica, or if time alone decides. */
  readonly #proof: ReplicaProof | undefined;
  #wroteAt = Number.NEGATIVE_INFINITY;
  #answered = 0;

  constructor(primary: Server, replica: Replica | undefined) {
    this.#primary = primary;
    this.#readYourWrites = replica?.readYourWrites ?? 0;
    if (replica === undefined) return;
    const connect = connector(replica.url, { readOnly: true });
    const proof = this.#readYourWrites === 0 ? undefined : new ReplicaProof(primary);
    const reads = new Server(connect, {
      ...REPLICA,
      allows: (connection) => proof?.allows(connection) ?? true,
    });
    proof?.judge(reads);
    this.#proof = proof;
    this.#replica = reads;
    if (serverUrls(replica.url).length > 1)
      this.#timer = setInterval(() => void leavePrimary(reads, connect).catch(() => {}), LOOK).unref();
  }

  /** How many reads the replica has answered. */
  get answered(): number {
    return this.#answered;
  }

  /** Must be called after each write of a user by this process. */
  wrote(): void {
    this.#wroteAt = performance.now();
    this.#proof?.wrote();
  }

  /** Runs a read; a `long` one runs alone on a connection. Fails with StoreUnavailableError. */
  run(statement: Statement, values: readonly unknown[], long = false): Promise<readonly Row[]> {
    const from = (server: Server) =>
      long ? server.readAlone(statement, values) : server.read(statement, values);
    const replica = this.#usable();
    if (replica === undefined) return from(this.#primary);
    return this.#counted(from(replica)).catch((error: unknown) =>
      orPrimary(error, () => from(this.#primary)),
    );
  }

  /** Runs reads of one snapshot, which `work` sends, perhaps once more. Fails with StoreUnavailableError. */
  snapshot(work: (run: Connection['run']) => Promise<void>): Promise<void> {
    const replica = this.#usable();
    if (replica === undefined) return this.#primary.snapshot(work);
    return this.#counted(replica.snapshot(work)).catch((error: unknown) =>
      orPrimary(error, () => this.#primary.snapshot(work)),
    );
  }

  #counted<T>(read: Promise<T>): Promise<T> {
    return read.then((found) => {
      this.#answered++;
      return found;
    });
  }

  /** The replica, if it may be read. */
  #usable(): Server | undefined {
    // Asked in any case, so that the replica is proven when the time is over.
    const isOpen = this.#proof?.isOpen() ?? true;
    return isOpen && performance.now() - this.#wroteAt >= this.#readYourWrites ? this.#replica : undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    this.#proof?.[Symbol.dispose]();
    await this.#replica?.[Symbol.asyncDispose]();
  }
}

/** query_canceled: the primary would end the statement after as long a time. */
const TOO_LONG = '57014';

/** Reads again from the primary, unless the replica has ended a statement that takes too long. */
function orPrimary<T>(error: unknown, read: () => Promise<T>): Promise<T> {
  if (sqlState((Object(error) as { readonly cause?: unknown }).cause) === TOO_LONG) throw error;
  return read();
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
