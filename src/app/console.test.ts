import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Backlog } from '../inbox/inbox.ts';
import { History } from '../telemetry/history.ts';
import { Metrics } from '../telemetry/metrics.ts';
import { RequestStats } from '../telemetry/request-stats.ts';
import { historySeries } from './console.ts';

const HISTORY_INTERVAL = 3_000;

test('every column has a value once there was something to measure', async () => {
  using metrics = new Metrics();
  const stats = new RequestStats('rest', metrics);
  const record = stats.recorderOf('/');
  const reply = { exchange: () => assert.fail('no reader was added') };
  const backlog: Backlog = { open: 3, oldestAt: Date.now() - 5_000, dead: 1 };
  let counts = 0;
  const inbox = {
    backlog() {
      counts++;
      return Promise.resolve(backlog);
    },
  };
  let now = 1_000_000;
  const attempts = metrics.counter('webhook.attempts', {
    description: 'Attempts',
    tags: ['outcome', 'target'],
  });
  attempts.with('outcome', 'done', 'target', 'handler:a');
  using made = historySeries({ metrics, requests: new Map([['rest', stats]]), inbox });
  using history = new History(made.sources, () => now);
  const commits = metrics.timer('database.commits', { description: 'Commits' });
  const writes = metrics.counter('database.writes', { description: 'Writes', tags: ['outcome'] });
  const received = metrics.counter('webhook.deliveries', { description: 'Deliveries', tags: ['result'] });
  const tick = () => {
    now += HISTORY_INTERVAL;
    history.tick();
  };
  tick();
  // The answer of the inbox.
  await Promise.resolve();
  for (let i = 0; i < 60; i++) record('GET', i < 6 ? 500 : 200, 4, reply);
  record('GET', 200, 3_600_000, reply);
  commits.record(0.002);
  commits.record(0.004);
  writes.with('outcome', 'stored').increment(6);
  received.with('result', 'stored').increment(30);
  attempts.with('outcome', 'done', 'target', 'handler:a').increment(6);
  attempts.with('outcome', 'dead', 'target', 'handler:a').increment(3);
  tick();
  const { columns } = history.read('15m');
  const last = (name: string) => columns[name]?.values.at(-1) ?? Number.NaN;
  assert.ok(Math.abs(last('rest.requests') - 61 / 3) < 1e-5);
  assert.ok(Math.abs(last('rest.errors') - 6 / 61) < 1e-6);
  assert.ok(Math.abs(last('rest.p99') - 4) < 0.5, 'a stream of events is no latency');
  assert.deepEqual([last('database.batch'), last('database.commit')], [3, 3]);
  assert.equal(last('inbox.received'), 10);
  const outcomes = ['done', 'retry', 'dead', 'crashed'].map((outcome) => last(`inbox.attempts.${outcome}`));
  assert.deepEqual(outcomes, [2, 0, 1, 0]);
  assert.equal(last('inbox.target.handler:a'), 3);
  assert.deepEqual([last('inbox.open'), last('inbox.dead')], [3, 1]);
  assert.ok(last('inbox.age') >= 5);
  for (const [name, { values }] of Object.entries(columns)) {
    assert.ok(Number.isFinite(values.at(-1)), name);
  }
  assert.equal(counts, 1, 'the inbox is counted once by all three windows');
});
