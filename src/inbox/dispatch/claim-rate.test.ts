import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ClaimRateLimit } from './claim-rate.ts';

test('without a rate there is no limit but a pause', () => {
  let now = 0;
  const limit = new ClaimRateLimit(undefined, () => now);
  limit.take(1_000_000);
  assert.equal(limit.free, Number.POSITIVE_INFINITY);
  limit.pause(500);
  limit.pause(100);
  now = 499;
  assert.equal(limit.free, 0, 'a shorter pause ends no longer one');
  now = 500;
  assert.equal(limit.free, Number.POSITIVE_INFINITY);
});

test('a burst may begin at once, then as many as the rate gives', () => {
  let now = 0;
  const limit = new ClaimRateLimit({ perMs: 0.01, burst: 3 }, () => now);
  const takeAll = () => {
    const { free } = limit;
    limit.take(free);
    return free;
  };
  assert.equal(takeAll(), 3);
  now = 99;
  assert.equal(takeAll(), 0);
  now = 100;
  assert.equal(takeAll(), 1);
  now = 100_000;
  assert.equal(takeAll(), 3, 'no more than the burst gathers');
});

test('in no window begin more than the burst and what the rate gives', () => {
  const steps = fc.array(fc.tuple(fc.nat(500), fc.nat(10)), { minLength: 1, maxLength: 60 });
  fc.assert(
    fc.property(
      steps,
      fc.integer({ min: 1, max: 50 }),
      fc.integer({ min: 1, max: 8 }),
      (moves, per, burst) => {
        let now = 0;
        const rate = { perMs: per / 1_000, burst };
        const limit = new ClaimRateLimit(rate, () => now);
        const begun: number[] = [];
        for (const [wait, wanted] of moves) {
          now += wait;
          const count = Math.min(wanted, limit.free);
          limit.take(count);
          begun.push(...Array.from({ length: count }, () => now));
        }
        for (const [i, from] of begun.entries()) {
          for (const [j, to] of begun.entries()) {
            if (j < i) continue;
            assert.ok(j - i + 1 <= burst + (to - from) * rate.perMs + 1e-6, `${begun}`);
          }
        }
      },
    ),
  );
});

test('it calls back once attempts may begin, after a pause as well', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let now = 0;
  let calls = 0;
  const pass = (ms: number) => {
    now += ms;
    t.mock.timers.tick(ms);
  };
  const limit = new ClaimRateLimit({ perMs: 0.01, burst: 1 }, () => now);
  limit.take(1);
  assert.equal(
    limit.onFree(() => calls++),
    100,
  );
  pass(99);
  assert.equal(calls, 0);
  pass(1);
  assert.deepEqual([calls, limit.free], [1, 1]);
  limit.pause(5_000);
  limit.onFree(() => calls++);
  assert.equal(
    limit.onFree(() => calls++),
    5_000,
    'the later one replaces the earlier one',
  );
  pass(5_000);
  assert.deepEqual([calls, limit.free], [2, 1]);
});

test('at a high rate it waits for several, so that each claim takes some', () => {
  let now = 0;
  const limit = new ClaimRateLimit({ perMs: 1, burst: 100 }, () => now);
  limit.take(100);
  assert.equal(
    limit.onFree(() => {}),
    50,
  );
  now = 50;
  assert.equal(limit.free, 50);
});
