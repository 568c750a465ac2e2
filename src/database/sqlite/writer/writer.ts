import { getCompileCacheDir } from 'node:module';
import { dirname, extname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { Worker } from 'node:worker_threads';
import { StoreUnavailableError } from '../../../core/store-errors.ts';
import type { BatchResult } from '../../batch-queue.ts';
import { type DatabaseObserver, unobserved } from '../../observer.ts';
import { BatchExecutor, type StepRows } from './batch.ts';
import { type PackedResults, packWrites, unpackResults } from './packed.ts';
import { WriteQueue } from './write-queue.ts';

/** The writing side of an SQLite database; disposing of it waits for the writes that were accepted. */
export interface Writer extends AsyncDisposable {
  readonly queue: WriteQueue;
}

export interface ThreadWriterOptions {
  /** Called once, when no later write can be trusted. */
  onFatal(error: StoreUnavailableError): void;
  readonly observer?: DatabaseObserver;
  /** Called when a batch has ended, before any of its writes is acknowledged. */
  onBatchEnd?(): void;
}

/**
 * While the thread commits one batch the next ones are on their way, and it makes one of all that have come: so it never
 * waits for this thread to hear of the last one. A few writes would not be worth the trip.
 */
const UNDER_WAY = 4;
const LEAST = 16;
/**
 * When it has nothing to do it begins with so many, while this thread still reads the rest: what came in one turn would
 * else be committed together, answered together and come together again, with one thread waiting for the other.
 */
const ENOUGH = 16;

/** Writes from a thread of its own. */
export function openThreadWriter(
  file: string,
  { onFatal, observer = unobserved, onBatchEnd }: ThreadWriterOptions,
): Writer {
  // `.ts` when run from source, `.js` in the built package.
  const script = new URL(`./writer-thread${extname(import.meta.url)}`, import.meta.url);
  const worker = new Worker(script, { name: 'writer', workerData: { file }, env: threadEnvironment() });
  /** Of the batches under way, the oldest first. */
  const answers: ((result: BatchResult<StepRows>) => void)[] = [];
  const queue = new WriteQueue({
    send(writes, done) {
      const packed = packWrites(writes);
      worker.postMessage(packed, [packed.bytes.buffer]);
      answers.push(done);
    },
    onFatal,
    observer,
    lanes: UNDER_WAY,
    least: LEAST,
    enough: ENOUGH,
  });

  function fail(reason: string): void {
    queue.fail(new StoreUnavailableError(reason));
  }
  function settle(result: BatchResult<StepRows>): void {
    onBatchEnd?.();
    answers.shift()?.(result);
  }
  worker.on('message', (message: PackedResults | string) => {
    if (typeof message === 'string') fail(`The file is no longer durable: ${message}`);
    else for (const result of unpackResults(message)) settle(result);
  });
  worker.on('error', (error) => {
    fail(`The writer thread failed: ${error}`);
  });
  const ended = Promise.withResolvers<void>();
  worker.on('exit', () => {
    fail('The writer thread has ended');
    while (answers.length > 0) settle({ results: [] });
    ended.resolve();
  });

  return {
    queue,
    async [Symbol.asyncDispose]() {
      await queue.idle();
      queue.close();
      worker.postMessage('close');
      await ended.promise;
    },
  };
}

/** A thread has the cache of compiled modules only from its environment. */
function threadEnvironment(): NodeJS.ProcessEnv {
  const cache = getCompileCacheDir();
  return cache === undefined ? process.env : { ...process.env, NODE_COMPILE_CACHE: dirname(cache) };
}

/** Writes on the caller's thread and connection: a database in memory belongs to one connection. */
export function openInlineWriter(
  db: DatabaseSync,
  onFatal: (error: StoreUnavailableError) => void,
  observer: DatabaseObserver = unobserved,
): Writer {
  const executor = new BatchExecutor(db);
  const queue = new WriteQueue({
    send: (writes, done) => done(executor.execute(writes)),
    onFatal,
    observer,
  });
  return {
    queue,
    async [Symbol.asyncDispose]() {
      await queue.idle();
      queue.close();
    },
  };
}
