import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ClaimedBytes } from './claimed-bytes.ts';

test('what is left again goes to the one with the highest priority first', () => {
  const bytes = new ClaimedBytes(10);
  const whole = bytes.reserve(10);
  const woken: string[] = [];
  bytes.onRoom(() => woken.push('plain'));
  bytes.onRoom(() => woken.push('high'), 2);
  bytes.onRoom(() => woken.push('higher'), 7);
  bytes.onRoom(() => woken.push('also plain'), 0);
  whole?.settle(0);
  assert.deepEqual(woken, ['higher', 'high', 'plain', 'also plain']);
  bytes.reserve(10)?.settle(0);
  assert.equal(woken.length, 4, 'each once');
});
