import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { HealthRegistry } from '../observability/health/registry.ts';
import { backlogCheck } from './backlog-check.ts';
import type { Backlog } from './inbox.ts';

const NOW = 1_000_000;

async function check(backlog: () => Backlog | Promise<Backlog>, thresholdMs: number) {
  const registry = new HealthRegistry([backlogCheck({ backlog }, { thresholdMs, now: () => NOW })]);
  return (await registry.check()).components.webhookBacklog;
}

test('nothing that waits is UP, also with dead deliveries', async () => {
  const backlog = { open: 0, oldestAt: undefined, dead: 3 };
  const expected = { status: 'UP', details: { open: 0, dead: 3, thresholdMs: 10 } };
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
