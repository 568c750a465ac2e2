import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { newDelivery } from '../../../test/support/new-delivery.ts';
import { Attempt } from './attempt.ts';
import { ClaimedBytes, HeldAttempts, Prefetch } from './held-attempts.ts';

describe('claimed bytes', () => {
  test('what is left again goes to the one with the highest priority first', () => {
    const bytes = new ClaimedBytes(10);
    const whole = bytes.reserve(10);
    const woken: string[] = [];
    bytes.onFree(() => woken.push('plain'));
    bytes.onFree(() => woken.push('high'), 2);
    bytes.onFree(() => woken.push('higher'), 7);
    bytes.onFree(() => woken.push('also plain'), 0);
    whole?.settle(0);
    assert.deepEqual(woken, ['higher', 'high', 'plain', 'also plain']);
    bytes.reserve(10)?.settle(0);
    assert.equal(woken.length, 4, 'each once');
  });
});

describe('held attempts', () => {
  const target = {
    name: 't',
    run: () => {},
    ...{ concurrency: 1, timeout: 1_000, maxAttempts: 3, backoff: { base: 0, cap: 0 } },
  };
  const attemptOf = (job: number) => {
    const claimed = { job, target: 't', attempt: 1, crashes: 0, ordered: false, delivery: newDelivery() };
    return new Attempt(claimed, target, Number.POSITIVE_INFINITY, () => {});
  };

  test('any sequence of additions, beginnings and ends keeps the order and forgets nobody', () => {
    const step = fc.oneof(
      { weight: 4, arbitrary: fc.constant('add' as const) },
      { weight: 4, arbitrary: fc.constant('take' as const) },
      { weight: 3, arbitrary: fc.nat(50) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const held = new HeldAttempts(() => {});
        const waiting: Attempt[] = [];
        const begun: Attempt[] = [];
        let jobs = 0;
        for (const each of steps) {
          if (each === 'add') {
            const attempt = attemptOf(++jobs);
            waiting.push(attempt);
            held.add(attempt);
          } else if (each === 'take') {
            const expected = waiting.shift();
            assert.equal(held.take(), expected);
            if (expected !== undefined) begun.push(expected);
          } else {
            const [ended] = begun.splice(each % Math.max(1, begun.length), 1);
            if (ended !== undefined) held.delete(ended);
          }
          const numbers = (attempts: Iterable<Attempt>) =>
            Array.from(attempts, ({ job }) => job.job).toSorted();
          assert.deepEqual([held.waiting, held.size], [waiting.length, waiting.length + begun.length]);
          assert.deepEqual(numbers(held), numbers([...waiting, ...begun]));
          assert.deepEqual(
            numbers([...held].filter(({ waitsSince }) => waitsSince === undefined)),
            numbers(begun),
          );
        }
      }),
    );
  });

  test('what waits for a second is taken out, oldest first, and what came later stays', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    let now = 0;
    t.mock.method(performance, 'now', () => now);
    const late: number[] = [];
    const held = new HeldAttempts(({ job }) => void late.push(job.job));
    for (let job = 1; job <= 3; job++) {
      now = 100 * job;
      held.add(attemptOf(job));
      held.watch();
    }
    now = 1_250;
    t.mock.timers.tick(1_000);
    assert.deepEqual([late, held.waiting], [[1, 2], 1]);
    now = 2_300;
    t.mock.timers.tick(1_000);
    assert.deepEqual([late, held.waiting], [[1, 2, 3], 0]);
  });
});

describe('pace', () => {
  test('as many jobs are claimed ahead as ended in the last 200 ms, at most 256', () => {
    const pace = new Prefetch();
    assert.equal(pace.ahead(1_000), 0);
    for (let i = 0; i < 30; i++) pace.note(1_000 + i);
    assert.equal(pace.ahead(1_190), 30);
    assert.equal(pace.ahead(1_210), 30, 'those of the time before');
    for (let i = 0; i < 400; i++) pace.note(1_220);
    assert.equal(pace.ahead(1_230), 256);
  });

  test('nothing is claimed ahead once the handlers have become slow', () => {
    const pace = new Prefetch();
    for (let i = 0; i < 100; i++) pace.note(1_000);
    assert.equal(pace.ahead(1_500), 0);
    pace.note(1_600);
    assert.equal(pace.ahead(1_601), 1);
  });
});
