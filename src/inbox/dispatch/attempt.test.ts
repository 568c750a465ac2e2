import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { ClaimedJob } from '../delivery.ts';
import { Attempt } from './attempt.ts';
import type { Target } from './target.ts';

const job: ClaimedJob = {
  job: 1,
  target: 't',
  attempt: 1,
  deaths: 0,
  ordered: false,
  delivery: {
    id: 'id',
    source: '',
    event: 'e',
    dataPointer: '',
    contentType: null,
    body: Buffer.from('{}'),
    receivedAt: 0,
  },
};

/** An attempt of a target, with a short timeout. */
function attemptOf(run: Target['run'], changes: Partial<Target> = {}): Attempt {
  const limits = { concurrency: 1, timeout: 20, maxAttempts: 3, backoff: { base: 0, cap: 0 } };
  return new Attempt(job, { name: 't', run, ...limits, ...changes }, Number.POSITIVE_INFINITY, () => {});
}

/** Goes on until it is told to end. */
const endless: Target['run'] = (_job, signal) => delay(60_000, undefined, { signal });

test('an attempt leaves how long it took, and the answer that came last', async () => {
  const { outcome } = await attemptOf(
    async (_job, _signal, answered) => {
      answered({ status: 500, body: '' });
      answered({ status: 500, body: 'no' });
      throw new Error('500');
    },
    { keptAttempts: 7 },
  ).run();
  assert.equal(outcome.kind, 'retry');
  const { duration, ...trace } = outcome.trace ?? assert.fail();
  assert.ok(duration >= 0 && Number.isInteger(duration));
  assert.deepEqual(trace, { answer: { status: 500, body: 'no' }, kept: 7 });
});

test('an answer that came in time counts, however long its body takes', async () => {
  const slow: Target['run'] = async (_job, signal, answered) => {
    answered({ status: 200, body: '' });
    await delay(100, undefined, { signal });
  };
  assert.equal((await attemptOf(slow).run()).outcome.kind, 'done');
  assert.equal((await attemptOf(endless).run()).outcome.kind, 'retry');
});

test('what is released leaves a trace too', async () => {
  const attempt = attemptOf(endless, { timeout: 60_000 });
  const ended = attempt.run();
  attempt.release(new Error('stop'));
  const { outcome } = await ended;
  assert.equal(outcome.kind, 'released');
  assert.equal(outcome.trace?.answer, null);
});
