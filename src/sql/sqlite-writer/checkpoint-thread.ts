import { parentPort } from 'node:worker_threads';
import { openWriteConnection } from '../sqlite/connection.ts';
import type { Outcome, ThreadResult } from './checkpointer.ts';

// The thread that checkpoints a long WAL; on the writer thread, commits would have to wait.
const port = parentPort;
if (port === null) throw new Error('checkpoint-thread.ts runs as a worker thread only');

/**
 * Does not block commits. The writer keeps its connection open, so closing this one does not delete the WAL.
 */
function checkpoint(file: string): ThreadResult {
  try {
    using db = openWriteConnection(file);
    return { ...(db.prepare('PRAGMA wal_checkpoint(PASSIVE)').get() as unknown as Outcome) };
  } catch (error) {
    const { message, errcode } = error as { readonly message: string; readonly errcode?: unknown };
    return { message, errcode };
  }
}

port.on('message', (file: string) => port.postMessage(checkpoint(file)));
