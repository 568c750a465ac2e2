import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import {
  aggregateStatus,
  cachedCheck,
  checkedResult,
  diskSpaceCheck,
  HealthRegistry,
  type HealthResult,
  type HealthStatus,
  isHealthStatus,
  PRE_STOP_DELAY,
  Readiness,
} from './health.ts';

describe('cached check', () => {
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
});

describe('checked result', () => {
  test('a result with a status stays as it was, and those without details are identical', () => {
    for (const status of ['UP', 'DOWN', 'OUT_OF_SERVICE', 'UNKNOWN']) {
      const result = { status, details: { a: 1 } };
      const checked = checkedResult(result);
      result.status = 'changed';
      assert.deepEqual(checked, { status, details: { a: 1 } });
      assert.equal(checkedResult({ status }), checkedResult({ status }));
    }
  });

  test('the status of parts is theirs taken together, whatever is said of the whole', () => {
    const parts = {
      a: { status: 'UP' },
      b: { status: 'UP', components: { c: { status: 'OUT_OF_SERVICE' }, d: { status: 'UP' } } },
    };
    assert.deepEqual(checkedResult({ status: 'UP', components: parts, details: { why: 1 } }), {
      status: 'OUT_OF_SERVICE',
      details: { why: 1 },
      components: { a: { status: 'UP' }, b: { ...parts.b, status: 'OUT_OF_SERVICE' } },
    });
    assert.deepEqual(checkedResult({ components: {} }), { status: 'UP', components: {} });
  });

  test('a part is named as it likes', () => {
    const components = Object.fromEntries([['__proto__', { status: 'DOWN' }]]);
    const { status, components: parts } = checkedResult({ components });
    assert.equal(status, 'DOWN');
    assert.deepEqual(Object.keys(parts ?? {}), ['__proto__']);
  });

  test('what is no result is refused', () => {
    const cycle: Record<string, unknown> = {};
    cycle.components = { cycle };
    const answers = [
      undefined,
      null,
      'UP',
      {},
      { status: 'up' },
      { components: { a: '1' } },
      { components: 'abc' },
    ];
    for (const answer of answers)
      assert.throws(() => checkedResult(answer), TypeError, JSON.stringify(answer));
    assert.throws(() => checkedResult(cycle), RangeError);
  });
});

describe('disk space check', () => {
  async function check(path: string, thresholdBytes: number) {
    const registry = new HealthRegistry([diskSpaceCheck({ path, thresholdBytes })]);
    return (await registry.check()).components.diskSpace ?? assert.fail('no such check');
  }

  test('a disk with room is UP, with what Actuator tells of it', async () => {
    await using folder = await temporaryFolder();
    const { status, details = {} } = await check(relative('.', folder.path), 1);
    assert.equal(status, 'UP');
    const { total, free, ...rest } = details;
    assert.deepEqual(rest, { threshold: 1, path: folder.path, exists: true });
    assert.ok(Number(free) > 0 && Number(total) >= Number(free));
  });

  test('less than the threshold is DOWN', async () => {
    await using folder = await temporaryFolder();
    const { details } = await check(folder.path, 1);
    const { status } = await check(folder.path, Number(details?.total) + 1);
    assert.equal(status, 'DOWN');
  });

  test('a folder that is not there is DOWN, whatever the threshold', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'gone');
    assert.deepEqual(await check(path, 0), {
      status: 'DOWN',
      details: { total: 0, free: 0, threshold: 0, path, exists: false },
    });
  });

  test('what cannot be looked at is DOWN with the reason', async () => {
    await using folder = await temporaryFolder();
    await writeFile(join(folder.path, 'file'), '');
    const { status, details } = await check(join(folder.path, 'file/below'), 0);
    assert.equal(status, 'DOWN');
    assert.match(String(details?.error), /ENOTDIR/);
  });
});

describe('readiness', () => {
  /** Probes at these times, in seconds; returns the pre-stop delay at `now`. */
  function delayAfter(times: readonly number[], now: number): number {
    const readiness = new Readiness();
    for (const time of times) readiness.probed(time * 1_000);
    return readiness.preStopDelay(now * 1_000);
  }

  test('without a prober a stop waits briefly', () => {
    assert.equal(delayAfter([], 1), 300);
    assert.equal(delayAfter([5], 6), 300, 'one probe may be anybody');
    assert.equal(delayAfter([5, 6], 70), 300, 'gone');
    assert.equal(delayAfter([5, 90], 91), 300, 'somebody else');
  });

  test('a stop waits for three probes, within bounds', () => {
    assert.equal(delayAfter([1, 3, 5], 6), 6_500);
    assert.equal(delayAfter([1, 1.1], 2), 800);
    assert.equal(delayAfter([1, 1], 2), 500);
    assert.equal(delayAfter([0, 10], 12), PRE_STOP_DELAY.max);
  });
});

describe('status', () => {
  const status = fc.constantFrom<HealthStatus>('UP', 'DOWN', 'OUT_OF_SERVICE', 'UNKNOWN');

  test('nothing that is checked is well', () => {
    assert.equal(aggregateStatus([]), 'UP');
  });

  test('the worst part decides: DOWN, then OUT_OF_SERVICE, then UP, and UNKNOWN only when nothing else is known', () => {
    fc.assert(
      fc.property(fc.array(status, { minLength: 1, maxLength: 8 }), (statuses) => {
        const has = (wanted: HealthStatus) => statuses.includes(wanted);
        const expected = has('DOWN')
          ? 'DOWN'
          : has('OUT_OF_SERVICE')
            ? 'OUT_OF_SERVICE'
            : has('UP')
              ? 'UP'
              : 'UNKNOWN';
        assert.equal(aggregateStatus(statuses), expected);
      }),
    );
  });

  test('order and grouping do not matter, and the whole is one of its parts', () => {
    const parts = fc.array(status, { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(parts, parts, (some, more) => {
        const whole = aggregateStatus([...some, ...more]);
        assert.equal(aggregateStatus([...more, ...some].toReversed()), whole);
        assert.equal(aggregateStatus([aggregateStatus(some), aggregateStatus(more)]), whole);
        assert.ok([...some, ...more].includes(whole));
      }),
    );
  });

  test('only the four words are a status', () => {
    for (const word of ['UP', 'DOWN', 'OUT_OF_SERVICE', 'UNKNOWN']) assert.equal(isHealthStatus(word), true);
    for (const other of ['up', 'FINE', '', undefined, null, 0, {}, 'toString']) {
      assert.equal(isHealthStatus(other), false);
    }
  });
});
