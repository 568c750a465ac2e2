import type { DatabaseSync } from 'node:sqlite';
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import type { BatchResult } from '../../batch-queue.ts';
import { openReadConnection, openWriteConnection } from '../connection.ts';
import { BatchExecutor, type StepRows, type Write } from './batch.ts';
import { type PackedWrites, packResults, unpackWrites } from './packed.ts';

// The one thread that owns the writing connection: a slow sync stalls it, never the event loop of the doors.
const port = parentPort;
if (port === null) throw new Error('writer-thread.ts runs as a worker thread only');

const { file } = workerData as { readonly file: string };
const db = openWriteConnection(file);
const executor = new BatchExecutor(db);
let failed = false;
// A process that is killed again and again never gets to it: whatever the log holds is folded at the start.
check(executor.fold());

/** The batches of a commit are answered with how they ended; a string says why the file can no longer be trusted. */
port.on('message', (message: PackedWrites | 'close') => {
  if (message === 'close') {
    using _last = failed ? logKeeper() : undefined;
    db.close();
    port.close();
    return;
  }
  const parts = [message, ...waiting(port)].map(unpackWrites);
  const writes = parts.flat();
  const result = failed ? refused(writes) : executor.execute(writes);
  failed ||= result.fatal !== undefined;
  const lengths = parts.map((part) => part.length);
  port.postMessage(packResults(result, lengths));
  if (failed) return;
  check(executor.maintain(writes));
});

/** What else has come until now. Nothing of it says "close": that comes when all writes were answered. */
function* waiting(from: MessagePort): Generator<PackedWrites> {
  for (;;) {
    const next = receiveMessageOnPort(from) as { readonly message: PackedWrites } | undefined;
    if (next === undefined) return;
    yield next.message;
  }
}

/** The last sync failed: the file cannot be trusted. */
function refused(writes: readonly Write[]): BatchResult<StepRows> {
  return { results: writes.map(() => ({ error: 'the file is no longer durable' })) };
}

function check(fatal: string | undefined): void {
  if (fatal === undefined) return;
  failed = true;
  port?.postMessage(fatal);
}

/**
 * A connection that only reads: with it open the other one does not fold the log into the file and delete it when it
 * closes. After a failed sync the log must stay, because the disk may lack what was folded before; the next process
 * folds it again from its beginning.
 */
function logKeeper(): DatabaseSync {
  const keeper = openReadConnection(file);
  keeper.exec('SELECT 1 FROM users');
  return keeper;
}
