import { extname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { Worker } from 'node:worker_threads';
import { StoreUnavailableError } from '../../core/errors.ts';
import { PACKAGE_ROOT, threadEnvironment } from '../../core/package-root.ts';
import type { BatchResult } from '../batch-queue.ts';
import { type DatabaseObserver, unobserved } from '../batch-queue.ts';
import { BatchExecutor, type StepRows, type Write, type WriteRegistry } from './batch.ts';
import type { HeldWal } from './checkpointer.ts';
import { type PackedResults, packWrites, unpackResults } from './packed.ts';
import { WriteQueue } from './write-queue.ts';

/** The writing side of an SQLite database; disposing of it waits for all accepted writes. */
export interface Writer extends AsyncDisposable {
  readonly queue: WriteQueue;
  /** Low-priority writes: each batch is a separate commit, between those of `queue`. */
  readonly background: WriteQueue;
  /** Whether a checkpoint is waiting for reads of this process; they should not start long transactions. */
  waitsForReads(): boolean;
}

/** The data that the writer thread starts with. */
export interface WriterData {
  readonly file: string;
  /** 1 while a checkpoint is waiting for reads. */
  readonly waits: Int32Array;
}

interface ThreadWriterOptions {
  /** Called once, when no later write can be durable. */
  onFatal(error: StoreUnavailableError): void;
  readonly observer: DatabaseObserver;
  /** Called when a batch has ended, before its writes are acknowledged. */
  onBatchEnd?(): void;
  /** Called while a reader has held the WAL for a long time. */
  readonly onHeldWal?: ((held: HeldWal) => void) | undefined;
}

/**
 * While the thread commits a batch, further batches are posted to it, which it then commits together; so it
 * never waits for this thread to handle a result. For fewer than `MIN_BATCH` writes, a message costs more
 * than it gains.
 */
const CONCURRENCY = 4;
const MIN_BATCH = 16;
/**
 * An idle thread gets a batch of this size before the tick ends. Otherwise the writes of one tick would be
 * committed and answered together, and the two threads would alternate instead of working in parallel.
 */
const EAGER_BATCH = 16;

type BatchEnd = (result: BatchResult<StepRows>) => void;

/** Opens a writer on a separate thread. */
export function openThreadWriter(
  file: string,
  { onFatal, observer, onBatchEnd, onHeldWal }: ThreadWriterOptions,
): Writer {
  // `.ts` when run from source, `.js` in the built package.
  const script = new URL(`src/sql/sqlite-writer/writer-thread${extname(import.meta.url)}`, PACKAGE_ROOT);
  const waits = new Int32Array(new SharedArrayBuffer(4));
  const workerData: WriterData = { file, waits };
  const worker = new Worker(script, { name: 'writer', workerData, env: threadEnvironment() });
  /** The callbacks of the batches in flight, oldest first. */
  const callbacks = { queue: [] as BatchEnd[], background: [] as BatchEnd[] };
  const send = (name: keyof typeof callbacks) => (writes: readonly Write[], done: BatchEnd) => {
    const packed = { ...packWrites(writes), isBackground: name === 'background' };
    worker.postMessage(packed, [packed.bytes.buffer]);
    callbacks[name].push(done);
  };
  const background = new WriteQueue({ send: send('background'), observer: unobserved });
  const queue = new WriteQueue({
    send: send('queue'),
    onFatal,
    observer,
    concurrency: CONCURRENCY,
    minBatch: MIN_BATCH,
    eagerBatch: EAGER_BATCH,
  });

  function fail(reason: string): void {
    const error = new StoreUnavailableError(reason);
    queue.fail(error);
    background.fail(error);
  }
  function settle(name: keyof typeof callbacks, result: BatchResult<StepRows>): void {
    onBatchEnd?.();
    if (result.fatal !== undefined) fail(`The store is no longer durable: ${result.fatal}`);
    callbacks[name].shift()?.(result);
  }
  worker.on('message', (message: PackedResults | HeldWal | string) => {
    if (typeof message === 'string') return fail(`The file is no longer durable: ${message}`);
    if ('heldMs' in message) return onHeldWal?.(message);
    const name = message.isBackground ? 'background' : 'queue';
    for (const result of unpackResults(message)) settle(name, result);
  });
  worker.on('error', (error) => {
    fail(`The writer thread failed: ${error}`);
  });
  const exited = Promise.withResolvers<void>();
  worker.on('exit', () => {
    fail('The writer thread exited');
    for (const name of ['queue', 'background'] as const) {
      while (callbacks[name].length > 0) settle(name, { results: [] });
    }
    exited.resolve();
  });

  return {
    queue,
    background,
    waitsForReads: () => Atomics.load(waits, 0) === 1,
    async [Symbol.asyncDispose]() {
      await Promise.all([queue[Symbol.asyncDispose](), background[Symbol.asyncDispose]()]);
      worker.postMessage('close');
      await exited.promise;
    },
  };
}

/**
 * Opens a writer on the caller's thread and connection, because an in-memory database has only one
 * connection.
 */
export function openInlineWriter(
  db: DatabaseSync,
  registry: WriteRegistry,
  onFatal: (error: StoreUnavailableError) => void,
  observer: DatabaseObserver,
): Writer {
  const executor = new BatchExecutor(db, registry);
  const send = (writes: readonly Write[], done: BatchEnd) => done(executor.execute(writes));
  const queue = new WriteQueue({ send, onFatal, observer });
  const background = new WriteQueue({ send, onFatal, observer: unobserved });
  return {
    queue,
    background,
    waitsForReads: () => false,
    async [Symbol.asyncDispose]() {
      await Promise.all([queue[Symbol.asyncDispose](), background[Symbol.asyncDispose]()]);
    },
  };
}
