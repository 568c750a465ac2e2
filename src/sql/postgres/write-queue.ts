import { randomUUID } from 'node:crypto';
import type { DatabaseObserver } from '../batch-queue.ts';
import { BatchQueue, type WriteResult } from '../batch-queue.ts';
import { isValueError } from '../postgres-pool/connection.ts';
import { type Server, writeFailure } from '../postgres-pool/server.ts';

/** Runs all writes of a batch in one statement; resolves to the result of each. */
type RunBatch<W, R> = (writes: readonly W[]) => Promise<readonly R[]>;

interface WriteQueueOptions<W> {
  /** Maximum number of batches in flight, each on its own connection. Default: 1. */
  readonly concurrency?: number;
  readonly observer: DatabaseObserver;
  /**
   * Maximum time that a write waits to be sent, in milliseconds; after that, it may wait as long again for a
   * connection.
   */
  readonly maxWait: number;
  /** The size of a write in bytes, for writes that together can exceed a statement's limit. Default: 0. */
  sizeOf?(write: W): number;
}

/** Maximum size of a batch in bytes; PostgreSQL limits a message to 1 GiB. A single write may be larger. */
const MAX_BYTES = 32 * 1024 * 1024;

/** A queue for writes of one kind; each batch is one statement. */
export function writeQueue<W, R>(
  run: RunBatch<W, R>,
  { concurrency = 1, observer, maxWait, sizeOf = () => 0 }: WriteQueueOptions<W>,
): BatchQueue<W, R> {
  const isTooLarge = (writes: readonly W[]) =>
    writes.reduce((sum, write) => sum + sizeOf(write), 0) > MAX_BYTES;

  /**
   * If a batch contains an invalid value, nothing is stored; it is bisected until only the invalid write
   * fails.
   */
  async function results(writes: readonly W[]): Promise<readonly WriteResult<R>[]> {
    if (writes.length > 1 && isTooLarge(writes)) return halves(writes);
    try {
      return (await run(writes)).map((rows) => ({ rows }));
    } catch (error) {
      if (writes.length > 1 && isValueError(error)) return halves(writes);
      const failure = writeFailure(error);
      return writes.map(() => ({ error: failure }));
    }
  }

  async function halves(writes: readonly W[]): Promise<readonly WriteResult<R>[]> {
    const middle = writes.length >> 1;
    return [...(await results(writes.slice(0, middle))), ...(await results(writes.slice(middle)))];
  }

  return new BatchQueue({
    send: (writes, done) => void results(writes).then((all) => done({ results: all })),
    observer,
    concurrency,
    maxWait,
  });
}

/** Runs a write that is not batched with others. Fails with StoreUnavailableError. */
export async function singleWrite<T>(observer: DatabaseObserver, work: () => Promise<T>): Promise<T> {
  const began = performance.now();
  const answered = observer.sent(began);
  let failed = 1;
  try {
    const result = await work();
    failed = 0;
    return result;
  } catch (error) {
    throw writeFailure(error);
  } finally {
    answered();
    observer.batch(1, failed, (performance.now() - began) / 1_000);
  }
}

/**
 * A commit that stores nothing but is as slow as a real one, because it writes a message to the WAL. The
 * insert of no rows makes it fail where writes are read-only, which the message alone would not.
 */
const MESSAGE = `pg_logical_emit_message(true, 'portico', '')`;
export const COMMIT_NOTHING = {
  name: 'commit-nothing',
  text: `INSERT INTO users (name, email) SELECT '', '' WHERE ${MESSAGE} IS NULL`,
};

/**
 * The same, but it also writes to the page of the newest row, because a damaged page fails only writes to its
 * table. The lock is that of a foreign key: it does not grow the table, and blocks only a removal of the row.
 */
const newestOf = (table: string, key: string) =>
  `newest AS (SELECT 1 FROM ${table} ORDER BY ${key} DESC LIMIT 1 FOR KEY SHARE SKIP LOCKED)`;
// The condition is never true, but num_nulls evaluates all of its arguments.
export const CHECK_USERS = {
  name: 'check-users',
  text: `
    WITH ${newestOf('users', 'id')}
    INSERT INTO users (name, email) SELECT '', ''
    WHERE num_nulls(${MESSAGE}, (SELECT count(*) FROM newest)) < 0`,
};
const CHECK_DELIVERIES = {
  name: 'check-deliveries',
  text: `
    WITH ${newestOf('deliveries', 'seq')}
    INSERT INTO deliveries (id, source, data_pointer, body, received_at) SELECT '', '', '', ''::bytea, 0
    WHERE num_nulls(${MESSAGE}, (SELECT count(*) FROM newest),
      (SELECT count(*) FROM deliveries WHERE source = '' AND dedup_key = $1),
      (SELECT count(target) FROM (SELECT target FROM jobs ORDER BY seq DESC LIMIT 1) AS job)) < 0`,
};

/** Checks that deliveries can be stored. Fails with StoreUnavailableError. */
export async function checkDeliveries(server: Server): Promise<void> {
  try {
    await server.write(CHECK_DELIVERIES, [randomUUID()]);
  } catch (error) {
    throw writeFailure(error);
  }
}
