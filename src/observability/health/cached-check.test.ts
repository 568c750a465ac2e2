import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { cachedCheck } from './cached-check.ts';
import type { HealthResult } from './health.ts';

/** A check that ends when the test says so, on a clock that the test moves. */
function underTest(ttlMs: number, cacheUntil?: AbortSignal) {
  let time = 0;
  let runs = 0;
  const underWay: PromiseWithResolvers<HealthResult>[] = [];
  let next: HealthResult | undefined;
  const ask = cachedCheck(
    () => {
      runs++;
      if (next !== undefined) return next;
      const run = Promise.withResolvers<HealthResult>();
      underWay.push(run);
      return run.promise;
    },
    { ttlMs, now: () => time, cacheUntil },
  );
  return {
    ask,
    get runs() {
      return runs;
    },
    underWay,
    pass(ms: number) {
      time += ms;
    },
    /** From now on runs end at once. */
    answer(result: HealthResult) {
      next = result;
    },
    /** Ends the run that is under way. */
    async settle(result: HealthResult) {
      underWay.shift()?.resolve(result);
      await turn();
    },
  };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));
const up = (n: number): HealthResult => ({ status: 'UP', details: { n } });

test('once the signal is aborted nothing is served from the cache', () => {
  const failed = new AbortController();
  const check = underTest(100, failed.signal);
  check.answer(up(1));
  for (let i = 0; i < 2; i++) assert.deepEqual(check.ask(), up(1));
  assert.equal(check.runs, 1);
  failed.abort();
  check.answer(up(2));
  for (let i = 0; i < 2; i++) assert.deepEqual(check.ask(), up(2));
  assert.equal(check.runs, 3);
});

test('without a time to live each question runs the check', () => {
  const check = underTest(0);
  check.answer(up(1));
  for (let i = 1; i <= 3; i++) {
    assert.deepEqual(check.ask(), up(1));
    assert.equal(check.runs, i);
  }
});

test('empty waits, fresh does not run, stale serves the old one and runs, expired waits', async () => {
  const check = underTest(10);
  const first = check.ask();
  assert.ok(first instanceof Promise);
  await check.settle(up(1));
  assert.deepEqual(await first, up(1));

  check.pass(9);
  assert.deepEqual(check.ask(), up(1));
  assert.equal(check.runs, 1);

  check.pass(1);
  assert.deepEqual(check.ask(), up(1));
  assert.deepEqual(check.ask(), up(1), 'while it runs');
  assert.equal(check.runs, 2);
  await check.settle(up(2));
  assert.deepEqual(check.ask(), up(2));
  assert.equal(check.runs, 2);

  check.pass(100);
  const expired = check.ask();
  assert.ok(expired instanceof Promise);
  await check.settle(up(3));
  assert.deepEqual(await expired, up(3));
});

test('a run that hangs is waited for only once the old result is too old', async () => {
  const check = underTest(10);
  void check.ask();
  await check.settle(up(1));
  check.pass(10);
  assert.deepEqual(check.ask(), up(1));
  check.pass(89);
  assert.deepEqual(check.ask(), up(1));
  check.pass(1);
  assert.ok(check.ask() instanceof Promise);
  assert.equal(check.runs, 2, 'one run is under way');
});

test('a check that answers at once is never served stale', () => {
  const check = underTest(10);
  check.answer(up(1));
  check.ask();
  check.pass(10);
  check.answer(up(2));
  assert.deepEqual(check.ask(), up(2));
});

test('any sequence: one run at a time, nothing too old is served, nothing fresh is fetched', async () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('ask' as const) }),
    fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 0, max: 120 }) }),
    fc.record({
      kind: fc.constant('settle' as const),
      status: fc.constantFrom('UP' as const, 'DOWN' as const),
    }),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 10 }),
      fc.array(step, { maxLength: 40 }),
      async (ttl, steps) => {
        const check = underTest(ttl);
        let now = 0;
        // What the check knows: its last result and when it came.
        let last: { readonly result: HealthResult; readonly at: number } | undefined;
        let runs = 0;
        const waiting: Promise<HealthResult>[] = [];
        for (const move of steps) {
          if (move.kind === 'pass') {
            check.pass(move.ms);
            now += move.ms;
          } else if (move.kind === 'settle' && check.underWay.length > 0) {
            const result: HealthResult = { status: move.status, details: { n: runs } };
            await check.settle(result);
            for (const answer of waiting.splice(0)) assert.equal(await answer, result);
            last = { result, at: now };
          } else if (move.kind === 'ask') {
            const age = last === undefined ? Infinity : now - last.at;
            if (age >= ttl && check.underWay.length === 0) runs++;
            const answer = check.ask();
            assert.equal(check.runs, runs);
            if (answer instanceof Promise) {
              assert.ok(age >= 10 * ttl, 'only who has nothing to show waits');
              waiting.push(answer);
            } else {
              assert.equal(answer, last?.result);
              assert.ok(age < 10 * ttl, 'nothing too old is served');
            }
          }
          assert.ok(check.underWay.length <= 1);
        }
      },
    ),
    { numRuns: 300 },
  );
});
