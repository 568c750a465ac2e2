import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newDelivery } from '../../../test/support/new-delivery.ts';
import type { ClaimedJob } from '../../inbox/delivery.ts';
import type { Target } from '../../inbox/dispatch/target.ts';
import type { RulesConfig } from './delivery-rules.ts';
import { guardedTarget } from './guarded-target.ts';

const { signal } = new AbortController();
const job: ClaimedJob = {
  job: 1,
  target: 't',
  attempt: 1,
  deaths: 0,
  ordered: false,
  delivery: newDelivery(),
};

/** Runs the job with these rules; says what became of it. */
async function run(rules: RulesConfig): Promise<readonly string[]> {
  const said: string[] = [];
  const target: Target = {
    name: 't',
    run: () => void said.push('ran'),
    concurrency: 1,
    timeout: 1,
    maxAttempts: 1,
    keptAttempts: 1,
    backoff: { base: 0, cap: 0 },
  };
  await guardedTarget(target, rules, () => said.push('filtered')).run(job, signal, () => {});
  return said;
}

test('a function is asked again before an attempt: the attempt runs, is left out, or fails', async () => {
  const boom = () => {
    throw new Error('boom');
  };
  assert.deepEqual(await run({ when: ({ data }) => data === 1 }), ['ran']);
  assert.deepEqual(await run({ when: ({ data }) => data === 2 }), ['filtered']);
  assert.deepEqual(await run({ order: ({ id }) => id }), ['ran']);
  await assert.rejects(run({ when: boom }), /boom/);
  await assert.rejects(run({ order: boom }), /boom/);
  await assert.rejects(run({ when: () => true, order: boom }), /boom/);
});

test('a condition is not asked again: it decided when the delivery came', async () => {
  assert.deepEqual(await run({ when: { pointer: '/data', is: 2 }, order: '/data' }), ['ran']);
});
