import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as tick } from 'node:timers/promises';
import { drainAccepts } from './door-server.ts';

/** Holds the thread, as a busy machine would, in milliseconds. */
function stall(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}

/** It does not wait for longer than this where somebody comes all the time, in milliseconds. */
const LIMIT = 1_500;

test('it waits until clients no longer connect', async () => {
  for (;;) {
    let accepted = 0;
    const clients = (async () => {
      for (; accepted < 50; accepted++) {
        stall(1);
        await tick();
      }
    })();
    const began = performance.now();
    await drainAccepts(() => accepted);
    const [found, took] = [accepted, performance.now() - began];
    await clients;
    // A machine that is too busy for all of them within the limit shows nothing.
    if (found < 50 && took >= LIMIT) continue;
    assert.equal(found, 50);
    return;
  }
});

test('a stall proves nothing: those who came meanwhile are accepted in the next ticks', async () => {
  let accepted = 0;
  const clients = (async () => {
    for (let i = 0; i < 5; i++) {
      stall(60);
      await tick();
      await tick();
      accepted++;
    }
  })();
  await drainAccepts(() => accepted);
  assert.equal(accepted, 5);
  await clients;
});

test('it ends although somebody connects in every tick', { timeout: 300_000 }, async () => {
  let accepted = 0;
  await drainAccepts(() => accepted++);
  assert.ok(accepted > 0);
});
