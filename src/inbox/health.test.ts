import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { HealthRegistry } from '../telemetry/health.ts';
import { Metrics } from '../telemetry/metrics.ts';
import { addInboxMetrics, backlogCheck } from './health.ts';
import type { Backlog } from './inbox.ts';

type BacklogCheckOptions = Parameters<typeof backlogCheck>[1];

describe('backlog check', () => {
  const NOW = 1_000_000;

  /** A clock of the store that answers nothing that is shown. */
  const unknown = (): number | Promise<number> => Number.NaN;

  async function check(
    backlog: () => Backlog | Promise<Backlog>,
    thresholdMs: number,
    { clock = unknown, ...options }: Partial<BacklogCheckOptions> & { readonly clock?: typeof unknown } = {},
  ) {
    const registry = new HealthRegistry([
      backlogCheck({ backlog, clock }, { thresholdMs, now: () => NOW, ...options }),
    ]);
    return (await registry.check()).components.webhookBacklog;
  }

  test('dead jobs are told of in words, and DOWN only where that was asked for', async () => {
    const words = (dead: number, options: Partial<BacklogCheckOptions> = {}) =>
      check(() => ({ open: 0, oldestAt: undefined, dead }), 10, options);
    const one = '1 job is dead and will not be retried: replay or discard the deliveries';
    assert.deepEqual(await words(1), {
      status: 'UP',
      details: { open: 0, dead: 1, thresholdMs: 10, deadLetters: one },
    });
    assert.equal((await words(5, { deadThreshold: 5 }))?.details?.deadLetters, undefined);
    const more = await words(6, { deadThreshold: 5, downWhenDead: true });
    assert.equal(more?.status, 'DOWN');
    assert.match(String(more?.details?.deadLetters), /^6 jobs are dead \(more than 5\) and /);
    assert.equal((await words(5, { deadThreshold: 5, downWhenDead: true }))?.status, 'UP');
  });

  test('nothing that waits is UP', async () => {
    const backlog = { open: 0, oldestAt: undefined, dead: 0 };
    const expected = { status: 'UP', details: { open: 0, dead: 0, thresholdMs: 10 } };
    assert.deepEqual(await check(() => backlog, 10), expected);
    assert.deepEqual(await check(async () => backlog, 10), expected);
  });

  test('DOWN exactly when the oldest has waited for longer than the threshold', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: -50, max: 200 }),
        fc.integer({ min: 1, max: 100 }),
        async (age, threshold) => {
          const result = await check(() => ({ open: 2, oldestAt: NOW - age, dead: 0 }), threshold);
          assert.deepEqual(result, {
            status: age > threshold ? 'DOWN' : 'UP',
            details: { open: 2, oldestMs: Math.max(0, age), dead: 0, thresholdMs: threshold },
          });
        },
      ),
    );
  });

  test('a store that does not answer is DOWN', async () => {
    const fails = () => {
      throw new Error('gone');
    };
    for (const backlog of [fails, async () => fails()]) {
      assert.deepEqual(await check(backlog, 10), { status: 'DOWN', details: { error: 'Error: gone' } });
    }
  });

  test('the difference of the clocks is a detail, in words when it is large, and no more', async () => {
    const backlog = { open: 0, oldestAt: undefined, dead: 0 };
    const details = async (clock: () => number | Promise<number>) => {
      const { status, details } = (await check(() => backlog, 10, { clock })) ?? {};
      const { clockSkewMs, clock: words } = (details ?? {}) as { clockSkewMs?: number; clock?: string };
      return {
        status,
        skew: clockSkewMs === undefined ? undefined : Math.round(clockSkewMs / 10_000) + 0,
        words,
      };
    };
    const words = (text: string) => `the clock of this process is ${text} that of the database`;
    for (const later of [(ms: number) => ms, async (ms: number) => ms]) {
      assert.deepEqual(await details(() => later(Date.now())), { status: 'UP', skew: 0, words: undefined });
      const behind = await details(() => later(Date.now() + 90_000));
      assert.deepEqual(behind, { status: 'UP', skew: -9, words: words('90 s behind') });
      const ahead = await details(() => later(Date.now() - 90_000));
      assert.deepEqual(ahead, { status: 'UP', skew: 9, words: words('90 s ahead of') });
    }
    const silent = await details(() => Promise.reject(new Error('gone')));
    assert.deepEqual(silent, { status: 'UP', skew: undefined, words: undefined });
  });

  test('the meter and the check share one question to the store', async () => {
    let asked = 0;
    const clock = () => {
      asked++;
      return Date.now();
    };
    const inbox = { backlog: () => ({ open: 0, oldestAt: undefined, dead: 0 }), clock };
    using metrics = new Metrics();
    addInboxMetrics(metrics, inbox);
    for (let i = 0; i < 3; i++) {
      await backlogCheck(inbox, { thresholdMs: 1 }).check(AbortSignal.timeout(1_000));
      for (const series of metrics.meter('webhook.clock.skew')?.series() ?? []) series.measure();
    }
    assert.equal(asked, 1);
  });
});

describe('backlog metrics', () => {
  const NAMES = ['webhook.backlog', 'webhook.backlog.age', 'webhook.dead'];

  function read(metrics: Metrics): readonly (number | undefined)[] {
    return NAMES.map((name) => [...(metrics.meter(name)?.series() ?? [])][0]?.measure()[0]?.value);
  }

  test('the backlog is asked once for all gauges, and not again at once', () => {
    using metrics = new Metrics();
    let asked = 0;
    const backlog = () => ({ open: ++asked, oldestAt: 1_000, dead: 2 });
    addInboxMetrics(metrics, { backlog, clock: Date.now }, () => 3_500);
    assert.equal(asked, 0, 'only when somebody looks');
    for (let i = 0; i < 3; i++) assert.deepEqual(read(metrics), [1, 2.5, 2]);
    assert.equal(asked, 1);
  });

  test('nothing waits: the age is 0, as it is when a clock was put back', () => {
    for (const oldestAt of [undefined, 9_000]) {
      using metrics = new Metrics();
      addInboxMetrics(
        metrics,
        { backlog: () => ({ open: 0, oldestAt, dead: 0 }), clock: Date.now },
        () => 1_000,
      );
      assert.deepEqual(read(metrics), [0, 0, 0]);
    }
  });

  test('an asynchronous reading is shown once it has resolved; a failed one is NaN', async () => {
    const answers: readonly (readonly [() => Backlog | Promise<Backlog>, readonly number[]])[] = [
      [async () => ({ open: 3, oldestAt: undefined, dead: 1 }), [3, 0, 1]],
      [() => Promise.reject(new Error('gone')), [Number.NaN, Number.NaN, Number.NaN]],
      [
        () => {
          throw new Error('closed');
        },
        [Number.NaN, Number.NaN, Number.NaN],
      ],
    ];
    for (const [backlog, expected] of answers) {
      using metrics = new Metrics();
      addInboxMetrics(metrics, { backlog, clock: Date.now });
      assert.deepEqual(read(metrics), [Number.NaN, Number.NaN, Number.NaN]);
      await new Promise(setImmediate);
      assert.deepEqual(read(metrics), expected);
    }
  });
});
