import { parentPort, workerData } from 'node:worker_threads';
import { BatchExecutor, type Write } from './batch.ts';
import { openWriteConnection } from './connection.ts';

// The one thread that owns the writing connection: a slow sync stalls it, never the event loop of the doors.
const port = parentPort;
if (port === null) throw new Error('writer-thread.ts runs as a worker thread only');

const db = openWriteConnection((workerData as { readonly file: string }).file);
const executor = new BatchExecutor(db);

/** A batch is answered with its BatchResult; a string says why the file can no longer be trusted. */
port.on('message', (writes: readonly Write[] | 'close') => {
  if (writes === 'close') {
    db.close();
    port.close();
    return;
  }
  const result = executor.execute(writes);
  port.postMessage(result);
  if (result.fatal !== undefined) return;
  const fatal = executor.maintain(writes);
  if (fatal !== undefined) port.postMessage(fatal);
});
