// Preloaded into every process of the tests, it holds the event loop at random moments, as a busy machine does:
// PORTICO_STALL_EVERY and PORTICO_STALL_MS bound the time between two stalls and their length, in milliseconds.
import { isMainThread } from 'node:worker_threads';

const EVERY = Number(process.env.PORTICO_STALL_EVERY ?? 500);
const LONGEST = Number(process.env.PORTICO_STALL_MS ?? 120);
const cell = new Int32Array(new SharedArrayBuffer(4));

function holdLater(): void {
  setTimeout(() => {
    Atomics.wait(cell, 0, 0, Math.random() * LONGEST);
    holdLater();
  }, Math.random() * EVERY).unref();
}

if (isMainThread) holdLater();
