import { BatchQueue, type WriteResult } from '../batch-queue.ts';
import type { DatabaseObserver } from '../observer.ts';
import { blamesValues } from './faults.ts';
import { writeFailure } from './server.ts';

/** How long a write waits for its batch to be sent, in milliseconds. */
const MAX_WAIT = 1_000;

/** Runs all writes of a batch in one statement; resolves to what each of them returned. */
export type RunBatch<W, R> = (writes: readonly W[]) => Promise<readonly R[]>;

/** Writes of one kind, gathered into one statement; up to `lanes` of them are under way on connections of their own. */
export function writeQueue<W, R>(
  run: RunBatch<W, R>,
  lanes: number,
  observer: DatabaseObserver,
): BatchQueue<W, R> {
  return new BatchQueue({
    send: (writes, done) => void results(run, writes).then((all) => done({ results: all })),
    observer,
    lanes,
    maxWait: MAX_WAIT,
  });
}

/** A batch that fails for the values in it is halved until the bad write fails alone: nothing of it was stored. */
async function results<W, R>(run: RunBatch<W, R>, writes: readonly W[]): Promise<readonly WriteResult<R>[]> {
  try {
    return (await run(writes)).map((rows) => ({ rows }));
  } catch (error) {
    if (writes.length === 1 || !blamesValues(error)) {
      const failure = writeFailure(error);
      return writes.map(() => ({ error: failure }));
    }
    const half = writes.length >> 1;
    return [...(await results(run, writes.slice(0, half))), ...(await results(run, writes.slice(half)))];
  }
}
