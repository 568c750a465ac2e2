import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MAX_LINGER, Readiness } from './readiness.ts';

/** Probes at these times, in seconds; returns the linger at `now`. */
function lingerAfter(times: readonly number[], now: number): number {
  const readiness = new Readiness();
  for (const time of times) readiness.probed(time * 1_000);
  return readiness.linger(now * 1_000);
}

test('without a prober a stop lingers briefly', () => {
  assert.equal(lingerAfter([], 1), 300);
  assert.equal(lingerAfter([5], 6), 300, 'one probe may be anybody');
  assert.equal(lingerAfter([5, 6], 70), 300, 'gone');
  assert.equal(lingerAfter([5, 90], 91), 300, 'somebody else');
});

test('a stop lingers for three probes, within bounds', () => {
  assert.equal(lingerAfter([1, 3, 5], 6), 6_500);
  assert.equal(lingerAfter([1, 1.1], 2), 800);
  assert.equal(lingerAfter([1, 1], 2), 500);
  assert.equal(lingerAfter([0, 10], 12), MAX_LINGER);
});
