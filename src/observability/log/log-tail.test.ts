import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LogTail } from './log-tail.ts';

test('the last thousand entries are kept, with their numbers', () => {
  const tail = new LogTail();
  for (let i = 1; i <= 5_000; i++) assert.equal(tail.add(`${i}`), `${i}`);
  const kept = tail.after(0);
  assert.deepEqual([kept.length, kept[0]?.line, kept.at(-1)?.number], [1_000, '4001', 5_000]);
  assert.deepEqual(
    tail.after(4_998).map(({ line }) => line),
    ['4999', '5000'],
  );
});

test('long entries leave fewer of them', () => {
  const tail = new LogTail();
  for (let i = 0; i < 100; i++) tail.add('x'.repeat(100_000));
  assert.equal(tail.after(0).length, 5);
  tail.add('y'.repeat(1_000_000));
  assert.equal(tail.after(0).length, 0, 'one that is too long itself is not kept');
  assert.equal(tail.latest, 101);
});
