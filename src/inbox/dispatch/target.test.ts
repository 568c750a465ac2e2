import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { backoff } from './target.ts';

const ALMOST_ONE = 1 - Number.EPSILON;

test('the longest wait doubles with each attempt, up to the cap', () => {
  const longest = (attempt: number) => backoff(attempt, { base: 1_000, cap: 60_000 }, ALMOST_ONE) + 1;
  assert.deepEqual(
    [1, 2, 3, 6, 7, 8, 50].map(longest),
    [1_000, 2_000, 4_000, 32_000, 60_000, 60_000, 60_000],
  );
});

test('the whole range is used, evenly: full jitter', () => {
  const options = { base: 1_000, cap: 3_600_000 };
  assert.equal(backoff(5, options, 0), 0);
  for (const share of [0.25, 0.5, 0.75]) assert.equal(backoff(5, options, share), 16_000 * share);
});

test('any attempt waits a whole number from 0 to its limit, and longer for a larger random number', () => {
  const random = fc.double({ min: 0, max: ALMOST_ONE, noNaN: true });
  const options = fc.record({ base: fc.nat(86_400_000), cap: fc.nat(604_800_000) });
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 100_000 }),
      options,
      random,
      random,
      (attempt, given, one, other) => {
        const [less, more] = [Math.min(one, other), Math.max(one, other)].map((r) =>
          backoff(attempt, given, r),
        );
        assert.ok(Number.isSafeInteger(less) && Number.isSafeInteger(more));
        assert.ok((less ?? -1) >= 0 && (less ?? 0) <= (more ?? 0) && (more ?? 0) <= given.cap);
      },
    ),
  );
});
