import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { HealthCheckNameError, type HealthIndicator, HealthRegistry, type HealthResult } from './health.ts';

describe('registry', () => {
  const UP: HealthResult = { status: 'UP' };
  const indicator = (name: string, check: HealthIndicator['check']): HealthIndicator => ({ name, check });

  test('UP when all checks pass, and when there are none', async () => {
    assert.deepEqual(await new HealthRegistry([]).check(), { status: 'UP', components: {} });
    const registry = new HealthRegistry([
      indicator('b', () => UP),
      indicator('a', async () => ({ status: 'UP', details: { free: 1 } })),
    ]);
    const report = await registry.check();
    assert.deepEqual(report, {
      status: 'UP',
      components: { b: UP, a: { status: 'UP', details: { free: 1 } } },
    });
    assert.deepEqual(Object.keys(report.components), ['b', 'a']);
  });

  test('one that is DOWN makes the whole DOWN and leaves the others', async () => {
    const registry = new HealthRegistry([
      indicator('good', () => UP),
      indicator('down', () => ({ status: 'DOWN', details: { code: 7 } })),
      indicator('throws', () => {
        throw new TypeError('broken');
      }),
      indicator('rejects', () => Promise.reject(new Error('gone'))),
      indicator('confused', () => ({ status: 'FINE' }) as unknown as HealthResult),
      indicator('silent', () => undefined as unknown as HealthResult),
      indicator('__proto__', () => UP),
    ]);
    const { status, components } = await registry.check();
    assert.equal(status, 'DOWN');
    assert.deepEqual(Object.entries(components), [
      ['good', UP],
      ['down', { status: 'DOWN', details: { code: 7 } }],
      ['throws', { status: 'DOWN', details: { error: 'TypeError: broken' } }],
      ['rejects', { status: 'DOWN', details: { error: 'Error: gone' } }],
      [
        'confused',
        {
          status: 'DOWN',
          details: {
            error:
              'TypeError: the check returned none of UP, DOWN, OUT_OF_SERVICE and UNKNOWN, nor a finite number',
          },
        },
      ],
      [
        'silent',
        {
          status: 'DOWN',
          details: {
            error:
              'TypeError: the check returned none of UP, DOWN, OUT_OF_SERVICE and UNKNOWN, nor a finite number',
          },
        },
      ],
      ['__proto__', UP],
    ]);
  });

  test('checks run side by side', async () => {
    const { promise: bothStarted, resolve } = Promise.withResolvers<void>();
    let started = 0;
    const waitForTheOther = async () => {
      if (++started === 2) resolve();
      await bothStarted;
      return UP;
    };
    const registry = new HealthRegistry([indicator('a', waitForTheOther), indicator('b', waitForTheOther)]);
    assert.equal((await registry.check()).status, 'UP');
  });

  test('a hanging check is DOWN in time, is aborted, and is not started again until it ends', async () => {
    let starts = 0;
    let aborted = false;
    let end = Promise.withResolvers<HealthResult>();
    const registry = new HealthRegistry(
      [
        indicator('slow', (signal) => {
          starts++;
          aborted = signal.aborted;
          signal.addEventListener('abort', () => {
            aborted = true;
          });
          return end.promise;
        }),
        indicator('fast', () => UP),
      ],
      { timeoutMs: 5 },
    );

    const first = await registry.check();
    assert.deepEqual(first.components, {
      slow: { status: 'DOWN', details: { error: 'TimeoutError: no answer within 5 ms' } },
      fast: UP,
    });
    assert.equal(aborted, true);

    const details = (await registry.check()).components.slow?.details;
    assert.match(String(details?.error), /^TimeoutError: the last check has been hanging for \d+ ms$/);
    assert.equal(typeof details?.hangingMs, 'number');
    assert.equal(starts, 1);

    end.resolve(UP);
    await end.promise;
    end = Promise.withResolvers();
    end.resolve(UP);
    // The late answer ends the old run only after its own promise reactions.
    await new Promise(setImmediate);
    assert.equal((await registry.check()).status, 'UP');
    assert.equal(starts, 2);
    assert.equal(aborted, false, 'the new run has a signal of its own');
  });

  test('who asks while a check runs shares its outcome', async () => {
    let starts = 0;
    const end = Promise.withResolvers<HealthResult>();
    const registry = new HealthRegistry([
      indicator('one', () => {
        starts++;
        return end.promise;
      }),
    ]);
    const reports = [registry.check(), registry.check(), registry.check()];
    end.resolve({ status: 'UP', details: { shared: true } });
    for (const report of await Promise.all(reports)) {
      assert.deepEqual(report.components.one, { status: 'UP', details: { shared: true } });
    }
    assert.equal(starts, 1);
  });

  test('a rejection after the time-out disturbs nobody', async () => {
    const end = Promise.withResolvers<HealthResult>();
    const registry = new HealthRegistry([indicator('late', () => end.promise)], { timeoutMs: 5 });
    assert.equal((await registry.check()).status, 'DOWN');
    end.reject(new Error('too late'));
    await new Promise(setImmediate);
    assert.equal((await registry.check()).components.late?.details?.error, 'Error: too late');
  });

  test('names are needed and are unique', () => {
    for (const names of [['a', 'a'], ['']]) {
      assert.throws(
        () => new HealthRegistry(names.map((name) => indicator(name, () => UP))),
        HealthCheckNameError,
      );
    }
  });

  test('a group gives the same report again until a result is another one', async () => {
    let details = { n: 1 };
    let clock = 0;
    const registry = new HealthRegistry(
      [
        indicator('plain', () => ({ status: 'UP' })),
        { ...indicator('cached', async () => ({ status: 'UP', details })), ttlMs: 10, critical: false },
      ],
      { now: () => clock },
    );
    const check = registry.group(['plain', 'cached']);
    const first = await check();
    assert.deepEqual(first.components.cached?.details, { critical: false, n: 1 });
    details = { n: 2 };
    assert.equal(check(), first, 'at once, and the same object');
    clock = 1_000;
    assert.deepEqual((await check()).components.cached?.details, { critical: false, n: 2 });

    const changing = { status: 'UP' as const, details: { n: 1 } };
    const own = new HealthRegistry([indicator('own', () => changing)]).group(['own']);
    const before = await own();
    changing.details = { n: 2 };
    assert.deepEqual((await own()).components.own?.details, { n: 2 }, 'whatever object a check returns');
    assert.deepEqual(before.components.own?.details, { n: 1 });
  });
});
