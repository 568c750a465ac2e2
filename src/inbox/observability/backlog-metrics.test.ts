import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Metrics } from '../../observability/metrics/metrics.ts';
import type { Backlog } from '../inbox.ts';
import { addBacklogMetrics } from './backlog-metrics.ts';

const NAMES = ['webhook.backlog', 'webhook.backlog.age', 'webhook.dead'];

function read(metrics: Metrics): readonly (number | undefined)[] {
  return NAMES.map((name) => [...(metrics.meter(name)?.series() ?? [])][0]?.measure()[0]?.value);
}

test('the backlog is asked once for all gauges, and not again at once', () => {
  using metrics = new Metrics();
  let asked = 0;
  const backlog = () => ({ open: ++asked, oldestAt: 1_000, dead: 2 });
  addBacklogMetrics(metrics, { backlog }, () => 3_500);
  assert.equal(asked, 0, 'only when somebody looks');
  for (let i = 0; i < 3; i++) assert.deepEqual(read(metrics), [1, 2.5, 2]);
  assert.equal(asked, 1);
});

test('nothing waits: the age is 0, as it is when a clock was put back', () => {
  for (const oldestAt of [undefined, 9_000]) {
    using metrics = new Metrics();
    addBacklogMetrics(metrics, { backlog: () => ({ open: 0, oldestAt, dead: 0 }) }, () => 1_000);
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
    addBacklogMetrics(metrics, { backlog });
    assert.deepEqual(read(metrics), [Number.NaN, Number.NaN, Number.NaN]);
    await new Promise(setImmediate);
    assert.deepEqual(read(metrics), expected);
  }
});
