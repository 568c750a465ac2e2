import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { CooperativeScheduler } from './scheduler.ts';

/** Waits in the name of each, and notes who goes on. */
function queue(turns: CooperativeScheduler, sinces: readonly number[]): readonly number[] {
  const gone: number[] = [];
  for (const since of sinces) turns.next(since).then(() => gone.push(since));
  return gone;
}

test('one goes on in each turn of the event loop, in the order in which they came', async () => {
  const gone = queue(new CooperativeScheduler(0), [3, 1, 2]);
  for (const expected of [[], [3], [3, 1], [3, 1, 2], [3, 1, 2]]) {
    assert.deepEqual(gone, expected);
    await nextTurn();
  }
});

test('with too much text the eldest goes on, again and again, and the others once there is room', async () => {
  const turns = new CooperativeScheduler(100);
  turns.hold(101);
  const gone = queue(turns, [3, 1, 2, 1, 1]);
  await nextTurn();
  await nextTurn();
  assert.deepEqual(gone, [1, 1]);
  turns.release(1);
  await nextTurn();
  assert.deepEqual(gone, [1, 1, 3]);
  turns.hold(1);
  for (let i = 0; i < 3; i++) await nextTurn();
  assert.deepEqual(gone, [1, 1, 3, 1, 2]);
});
