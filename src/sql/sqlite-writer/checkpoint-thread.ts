import { parentPort, workerData } from 'node:worker_threads';
import { openWriteConnection } from '../sqlite/connection.ts';
import type { Outcome, ThreadResult } from './checkpointer.ts';

// The thread that copies a long WAL into the database, because commits would wait for the writer's.
const port = parentPort;
if (port === null) throw new Error('checkpoint-thread.ts runs as a worker thread only');

/** Commits of others go on meanwhile. Those who made the connection have it open too, so its end deletes no WAL. */
function checkpoint(file: string): ThreadResult {
  try {
    using db = openWriteConnection(file);
    return { ...(db.prepare('PRAGMA wal_checkpoint(PASSIVE)').get() as unknown as Outcome) };
  } catch (error) {
    const { message, errcode } = error as { readonly message: string; readonly errcode?: unknown };
    return { message, errcode };
  }
}

port.postMessage(checkpoint((workerData as { readonly file: string }).file));
