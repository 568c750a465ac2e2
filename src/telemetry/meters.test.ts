import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LatencyHistogram, percentileBetween } from './meters.ts';

const NOTHING = new LatencyHistogram().counts;

test('a percentile is at most an eighth off, at any size', () => {
  for (const milliseconds of [0.009, 0.04, 0.3, 1, 7.7, 65, 999, 12_345, 900_000]) {
    const histogram = new LatencyHistogram();
    histogram.record(milliseconds);
    const found = percentileBetween(NOTHING, histogram.counts, 0.5);
    assert.ok(Math.abs(found - milliseconds) <= milliseconds / 8, `${found} for ${milliseconds}`);
  }
});

test('it is that of what came in between', () => {
  const histogram = new LatencyHistogram();
  for (let i = 0; i < 100; i++) histogram.record(1_000);
  const before = histogram.counts.slice();
  assert.ok(Number.isNaN(percentileBetween(before, histogram.counts, 0.99)));
  for (let i = 0; i < 98; i++) histogram.record(1);
  for (let i = 0; i < 2; i++) histogram.record(100);
  assert.ok(percentileBetween(before, histogram.counts, 0.5) < 1.2);
  assert.ok(percentileBetween(before, histogram.counts, 0.99) > 85);
});

test('what is no duration is ignored, and too long ones have the last bucket', () => {
  const histogram = new LatencyHistogram();
  for (const wrong of [-1, Number.NaN]) histogram.record(wrong);
  assert.deepEqual(histogram.counts, NOTHING);
  histogram.record(Number.POSITIVE_INFINITY);
  assert.equal(histogram.counts.at(-1), 1);
});
