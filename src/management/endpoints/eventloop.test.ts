import assert from 'node:assert/strict';
import { test } from 'node:test';
import { managementApp } from '../../../test/support/management-app.ts';
import { EventLoopWindows } from '../../observability/runtime/event-loop-windows.ts';

/** Keeps the loop from everything else. */
function block(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}

const turns = async (milliseconds: number) => {
  await new Promise((resolve) => setTimeout(resolve, milliseconds));
};

test('numbers in their units', async () => {
  await using app = await managementApp();
  await turns(100);
  const { window, utilization, delay } = (await app.inject('/actuator/eventloop')).json();
  assert.match(window, /^PT\d+(\.\d+)?S$/);
  for (const value of Object.values(utilization)) assert.ok(Number(value) >= 0 && Number(value) <= 1);
  assert.deepEqual(Object.keys(utilization), ['sinceStart', 'window']);
  const { unit, ...numbers } = delay;
  assert.equal(unit, 'milliseconds');
  assert.deepEqual(Object.keys(numbers), ['min', 'mean', 'max', 'p50', 'p90', 'p99', 'p999']);
  for (const value of Object.values(numbers)) assert.ok(typeof value === 'number' && value >= 0);
});

test('a loop that was blocked shows for how long', async () => {
  using windows = new EventLoopWindows();
  await turns(60);
  block(200);
  await turns(60);
  const { delay, utilization, windowMs } = windows.read();
  assert.ok((delay.max ?? 0) >= 150, `${delay.max} ms`);
  // The loop may have been idle for longer than it was told to wait.
  assert.ok(utilization.window > 0.9 * (200 / windowMs), `${utilization.window} of ${windowMs} ms`);
});

test('before anything is measured there is nothing to tell', () => {
  using windows = new EventLoopWindows();
  const { delay } = windows.read();
  for (const value of Object.values(delay)) assert.equal(value, 0);
});

test('what is long past no longer counts', async () => {
  using windows = new EventLoopWindows(100);
  await turns(30);
  block(150);
  await turns(30);
  const deadline = performance.now() + 10_000;
  while ((windows.read().delay.max ?? 0) >= 100 && performance.now() < deadline) await turns(50);
  assert.ok((windows.read().delay.max ?? 0) < 100);
});
