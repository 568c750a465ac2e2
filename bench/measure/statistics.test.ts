import assert from 'node:assert/strict';
import { test } from 'node:test';
import { median, percentile, ratio, spread } from './statistics.ts';

test('the median is the middle value, or the mean of the two in the middle', () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 3, 2]), 2.5);
  assert.equal(median([7]), 7);
  assert.ok(Number.isNaN(median([])));
});

test('a percentile is a value that was measured', () => {
  const hundred = Array.from({ length: 100 }, (_, i) => 100 - i);
  assert.equal(percentile(hundred, 99), 99);
  assert.equal(percentile(hundred, 50), 50);
  assert.equal(percentile(hundred, 100), 100);
  assert.equal(percentile([5], 99), 5);
  assert.equal(percentile([1, 900], 99), 900);
});

test('a ratio is that of the medians; its spread is that of the rounds', () => {
  assert.deepEqual(ratio([10, 20, 30], [10, 10, 20]), { value: 2, spread: [1, 2] });
  assert.deepEqual(spread([2, 9, 1]), [1, 9]);
});
