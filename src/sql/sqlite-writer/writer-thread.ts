import { parentPort, workerData } from 'node:worker_threads';
import { SQLITE_WRITES } from '../sqlite/writes.ts';
import { serveWrites } from './write-loop.ts';
import type { WriterData } from './writer.ts';

// The entry of the writer thread: hands the features' statements to the writer.
if (parentPort === null) throw new Error('writer-thread.ts runs as a worker thread only');
serveWrites(parentPort, workerData as WriterData, SQLITE_WRITES);
