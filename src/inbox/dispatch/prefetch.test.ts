import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ClaimGate } from './prefetch.ts';

test('without a rate there is no limit but a pause', () => {
  let now = 0;
  const gate = new ClaimGate(undefined, () => now);
  gate.take(1_000_000);
  assert.equal(gate.free, Number.POSITIVE_INFINITY);
  gate.pause(500);
  gate.pause(100);
  now = 499;
  assert.equal(gate.free, 0, 'a shorter pause ends no longer one');
  now = 500;
  assert.equal(gate.free, Number.POSITIVE_INFINITY);
});

test('a burst may begin at once, then as many as the rate gives', () => {
  let now = 0;
  const gate = new ClaimGate({ perMs: 0.01, burst: 3 }, () => now);
  const takeAll = () => {
    const { free } = gate;
    gate.take(free);
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
        const gate = new ClaimGate(rate, () => now);
        const begun: number[] = [];
        for (const [wait, wanted] of moves) {
          now += wait;
          const count = Math.min(wanted, gate.free);
          gate.take(count);
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
  const gate = new ClaimGate({ perMs: 0.01, burst: 1 }, () => now);
  gate.take(1);
  assert.equal(
    gate.onFree(() => calls++),
    100,
  );
  pass(99);
  assert.equal(calls, 0);
  pass(1);
  assert.deepEqual([calls, gate.free], [1, 1]);
  gate.pause(5_000);
  gate.onFree(() => calls++);
  assert.equal(
    gate.onFree(() => calls++),
    5_000,
    'the later one replaces the earlier one',
  );
  pass(5_000);
  assert.deepEqual([calls, gate.free], [2, 1]);
});

test('at a high rate it waits for several, so that each claim takes some', () => {
  let now = 0;
  const gate = new ClaimGate({ perMs: 1, burst: 100 }, () => now);
  gate.take(100);
  assert.equal(
    gate.onFree(() => {}),
    50,
  );
  now = 50;
  assert.equal(gate.free, 50);
});
