import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withIsolation } from './isolated-handlers.ts';

const handler = () => {};

test('a handler is isolated when it says so, or the default says so, with few threads', () => {
  const handlers = new Map([
    ['unsaid', { handler }],
    ['inside', { handler, isolate: false }],
    ['isolated', { handler, isolate: true }],
    ['wide', { handler, isolate: true, concurrency: 9 }],
  ]);
  const read = (isolate: boolean, concurrency: number) =>
    Array.from(withIsolation(handlers, { isolate, concurrency }), ([, spec]) => [
      spec.isolate,
      spec.concurrency,
    ]);
  assert.deepEqual(read(false, 16), [
    [false, undefined],
    [false, undefined],
    [true, 4],
    [true, 9],
  ]);
  assert.deepEqual(read(true, 2), [
    [true, 2],
    [false, undefined],
    [true, 2],
    [true, 9],
  ]);
});
