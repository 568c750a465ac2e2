import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventLoopCheck } from '../health/event-loop-check.ts';
import { EventLoopDelay } from './event-loop-delay.ts';

const HOUR = 3_600_000;

function block(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

test('a window tells of the delay in it, the next one does not any more', async () => {
  using delay = new EventLoopDelay(HOUR);
  assert.equal(delay.p99, undefined);
  // The first look, from which the next one is measured.
  await sleep(120);
  block(400);
  await sleep(10);
  delay.nextWindow();
  assert.ok(delay.p99 !== undefined && delay.p99 >= 200, String(delay.p99));

  delay.nextWindow();
  assert.equal(delay.p99, 0, 'nothing was measured');
});

test('a window ends by itself', async () => {
  using delay = new EventLoopDelay(1);
  await sleep(20);
  assert.notEqual(delay.p99, undefined);
});

test('the check is DOWN above its threshold only, and UP while nothing is known', () => {
  const check = (p99: number | undefined) => eventLoopCheck({ p99 }, 100).check(new AbortController().signal);
  assert.deepEqual(check(undefined), { status: 'UP', details: { thresholdMs: 100 } });
  assert.deepEqual(check(100), { status: 'UP', details: { p99Ms: 100, thresholdMs: 100 } });
  assert.deepEqual(check(100.6), { status: 'DOWN', details: { p99Ms: 101, thresholdMs: 100 } });
});
