import { setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { isExpected } from '../../core/expected-error.ts';
import type { CopyJob } from './copied-file.ts';
import { copyFile } from './copy-file.ts';

// The thread that copies a database: the check of a large one takes seconds, which the doors must not wait for.
const port = parentPort;
if (port === null) throw new Error('copy-thread.ts runs as a worker thread only');

const job = workerData as CopyJob;
// On Linux the priority is that of the calling thread alone.
if (process.platform === 'linux' && job.live) setPriority(10);
try {
  const copied = await copyFile(job, (step, done, total) => port.postMessage({ step, done, total }));
  port.postMessage({ copied });
} catch (error) {
  const message = error instanceof Error ? error.message : String(error);
  port.postMessage({ failed: message, expected: isExpected(error) });
}
port.close();
