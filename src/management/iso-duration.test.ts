import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatDuration, parseDuration } from './iso-duration.ts';

test('durations are written as Java writes them', () => {
  for (const [milliseconds, text] of [
    [0, 'PT0S'],
    [23, 'PT0.023S'],
    [1_000, 'PT1S'],
    [10_000, 'PT10S'],
    [65_500, 'PT1M5.5S'],
    [60_000, 'PT1M'],
    [3_723_004, 'PT1H2M3.004S'],
    [360_000_000, 'PT100H'],
    [59_999.9999, 'PT1M'],
    [0.4236, 'PT0.000424S'],
    [0.0001, 'PT0S'],
  ] as const) {
    assert.equal(formatDuration(milliseconds), text);
  }
});

test('durations are read', () => {
  for (const [text, milliseconds] of [
    ['PT10M', 600_000],
    ['P1D', 86_400_000],
    ['P1DT1H1M1.5S', 90_061_500],
    ['pt5s', 5_000],
    ['PT0S', 0],
  ] as const) {
    assert.equal(parseDuration(text), milliseconds);
  }
});

test('what is no duration is not read', () => {
  for (const text of [
    '',
    'P',
    'PT',
    '10M',
    'PT10',
    'P10M',
    'P1Y',
    'PT-5S',
    'PT1.5M',
    'PT5S1H',
    ' PT5S',
    'PT5S\n',
  ]) {
    assert.equal(parseDuration(text), undefined, text);
  }
});

test('what is written is read back', () => {
  fc.assert(
    fc.property(fc.nat(1e9), (milliseconds) => {
      assert.equal(parseDuration(formatDuration(milliseconds)), milliseconds);
    }),
  );
});
