import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { UnreadEntries } from './unread-entries.ts';

const THREAD = `
import { parentPort, workerData } from 'node:worker_threads';
const { UnreadEntries } = await import(workerData.module);
const unread = new UnreadEntries(workerData.buffer);
unread.wrote(2_000_000);
parentPort.postMessage('one');
unread.wrote(1);
Atomics.store(new Int32Array(workerData.passed), 0, 1);
Atomics.notify(new Int32Array(workerData.passed), 0);
`;

test('a thread with too many unread entries waits until they are read', async () => {
  const unread = new UnreadEntries();
  const passed = new SharedArrayBuffer(4);
  const module = new URL('unread-entries.ts', import.meta.url).href;
  const code = new URL(`data:text/javascript,${encodeURIComponent(THREAD)}`);
  const worker = new Worker(code, { workerData: { module, buffer: unread.buffer, passed } });
  const exited = once(worker, 'exit');
  await once(worker, 'message');
  assert.equal(Atomics.wait(new Int32Array(passed), 0, 0, 200), 'timed-out');
  unread.read(2_000_000);
  await exited;
  assert.equal(new Int32Array(passed)[0], 1);
});
