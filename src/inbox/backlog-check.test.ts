import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { HealthRegistry } from '../observability/health/registry.ts';
import { type BacklogCheckOptions, backlogCheck } from './backlog-check.ts';
import type { Backlog } from './inbox.ts';

const NOW = 1_000_000;

async function check(
  backlog: () => Backlog | Promise<Backlog>,
  thresholdMs: number,
  options: Partial<BacklogCheckOptions> = {},
) {
  const registry = new HealthRegistry([
    backlogCheck({ backlog }, { thresholdMs, now: () => NOW, ...options }),
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
