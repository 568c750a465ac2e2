import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { waitFor } from '../../../test/support/wait-for.ts';
import { parseFrame, readThreads } from './thread-report.ts';

const frame = (
  className: string,
  methodName: string,
  fileName: string | undefined,
  lineNumber: number,
  native = false,
) => ({
  className,
  methodName,
  fileName,
  lineNumber,
  native,
});

test('rows of stacks in all their forms', () => {
  for (const [row, expected] of [
    ['at Pool.take (file:///x/pool.ts:3:7)', frame('Pool', 'take', 'file:///x/pool.ts', 3)],
    ['    at take (/x/a b (1)/pool.ts:3:7)', frame('', 'take', '/x/a b (1)/pool.ts', 3)],
    ['at file:///x/pool.ts:3:7', frame('', '<anonymous>', 'file:///x/pool.ts', 3)],
    ['at async Pool.take (file:///x/pool.ts:3:7)', frame('Pool', 'take', 'file:///x/pool.ts', 3)],
    ['at new Pool (file:///x/pool.ts:3:7)', frame('', 'Pool', 'file:///x/pool.ts', 3)],
    ['at Pool.a [as b] (file:///x/pool.ts:3:7)', frame('Pool', 'a', 'file:///x/pool.ts', 3)],
    ['at  ([worker eval]:1:26)', frame('', '<anonymous>', '[worker eval]', 1)],
    ['at Array.map (<anonymous>)', frame('Array', 'map', undefined, -1)],
    ['at JSON.parse (native)', frame('JSON', 'parse', undefined, -1, true)],
    [
      'at listOnTimeout (node:internal/timers:685:17)',
      frame('', 'listOnTimeout', 'node:internal/timers', 685, true),
    ],
  ] as const) {
    assert.deepEqual(parseFrame(row), expected, row);
  }
  for (const row of ['', 'Unavailable.', 'Error: at', 'x at y'])
    assert.equal(parseFrame(row), undefined, row);
});

test('the main thread and every worker, each with what it does', async () => {
  const busy = 'postMessage("up"); for (;;) ;'.replace(
    'postMessage',
    'require("worker_threads").parentPort.postMessage',
  );
  const idle = 'require("worker_threads").parentPort.on("message", () => {}).postMessage("up");';
  const workers = [
    new Worker(busy, { eval: true, name: 'busy one' }),
    new Worker(idle, { eval: true, name: 'idle one' }),
  ];
  try {
    await Promise.all(workers.map((worker) => once(worker, 'message')));
    const [main, ...others] = readThreads();
    assert.equal(main?.name, 'main');
    assert.equal(main?.id, 0);
    assert.ok(main?.stack.some(({ methodName }) => methodName === 'readThreads'));
    const named = new Map(others.map((thread) => [thread.name, thread]));
    assert.deepEqual([...named.keys()], ['busy one', 'idle one']);
    assert.equal(named.get('busy one')?.stack[0]?.fileName, '[worker eval]');
    await waitFor('the idle worker to come to rest', () =>
      readThreads().some(({ name, stack }) => name === 'idle one' && stack.length === 0),
    );
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
});
