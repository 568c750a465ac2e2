import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { RunningTime, within } from './running-time.ts';

/** Stops this process for a while. */
const standStill = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

test('time passes while the process runs, and not while it stands still', async () => {
  using time = new RunningTime();
  for (let i = 0; i < 5; i++) {
    standStill(200);
    await sleep(1);
  }
  assert.ok(time.elapsed < 200, `${time.elapsed}`);
  while (time.elapsed < 200) await sleep(1);
});

test('what is within its time gives what it gives, and what is not fails', async () => {
  assert.equal(await within(1_000, () => 'at once'), 'at once');
  assert.equal(await within(1_000, () => sleep(5, 'soon')), 'soon');
  await assert.rejects(
    within(1_000, () => Promise.reject(new Error('its own'))),
    /its own/,
  );
  await assert.rejects(
    within(20, () => new Promise(() => {})),
    /longer than 20 ms/,
  );
  await within(100, async () => standStill(300));
});
