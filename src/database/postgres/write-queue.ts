import { BatchQueue, type WriteResult } from '../batch-queue.ts';
import type { DatabaseObserver } from '../observer.ts';
import { blamesValues } from './pool/faults.ts';
import { writeFailure } from './pool/server.ts';

/** How long a write waits for its batch to be sent, in milliseconds; together with the wait for a connection no longer than a second. */
const MAX_WAIT = 500;

/** Runs all writes of a batch in one statement; resolves to what each of them returned. */
export type RunBatch<W, R> = (writes: readonly W[]) => Promise<readonly R[]>;

export interface WriteQueueOptions<W> {
  /** Batches under way at the same time, each on a connection of its own; default 1. */
  readonly lanes?: number;
  readonly observer: DatabaseObserver;
  /** The bytes of a write, where many of them could be more than a statement takes. */
  sizeOf?(write: W): number;
}

/** The server takes a gigabyte in one message; a single write may be larger than this. */
const MAX_BYTES = 32 * 1024 * 1024;

/** Writes of one kind, gathered into one statement. */
export function writeQueue<W, R>(
  run: RunBatch<W, R>,
  { lanes = 1, observer, sizeOf = () => 0 }: WriteQueueOptions<W>,
): BatchQueue<W, R> {
  const isTooLarge = (writes: readonly W[]) =>
    writes.reduce((sum, write) => sum + sizeOf(write), 0) > MAX_BYTES;

  /** A batch that fails for the values in it is halved until the bad write fails alone: nothing of it was stored. */
  async function results(writes: readonly W[]): Promise<readonly WriteResult<R>[]> {
    if (writes.length > 1 && isTooLarge(writes)) return halves(writes);
    try {
      return (await run(writes)).map((rows) => ({ rows }));
    } catch (error) {
      if (writes.length > 1 && blamesValues(error)) return halves(writes);
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
    lanes,
    maxWait: MAX_WAIT,
  });
}
