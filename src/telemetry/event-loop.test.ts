import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { waitFor } from '../../test/support/wait-for.ts';
import { eventLoopCheck } from './health.ts';
import { EventLoopWindows } from './runtime.ts';

function block(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

test('nothing is told in the first window, then the delay of the last windows', async () => {
  using windows = new EventLoopWindows(200);
  assert.equal(windows.p99, undefined);
  await sleep(60);
  block(300);
  await waitFor('a late window', () => (windows.p99 ?? 0) >= 150);
  await waitFor('a punctual window', () => (windows.p99 ?? Infinity) < 150);
});

test('the check is DOWN above its threshold only, and UP while nothing is known', () => {
  const check = (p99: number | undefined) => eventLoopCheck({ p99 }, 100).check(new AbortController().signal);
  assert.deepEqual(check(undefined), { status: 'UP', details: { thresholdMs: 100 } });
  assert.deepEqual(check(100), { status: 'UP', details: { p99Ms: 100, thresholdMs: 100 } });
  assert.deepEqual(check(100.6), { status: 'DOWN', details: { p99Ms: 101, thresholdMs: 100 } });
});
