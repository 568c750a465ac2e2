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
  crashes: 0,
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

test('a target that returns at once has ended at once, whatever it returns or throws', () => {
  const outcomeOf = (run: () => unknown) => {
    const ended = attemptOf(run as Target['run']).run();
    assert.ok(!(ended instanceof Promise));
    return ended.outcome;
  };
  const done = outcomeOf(() => {});
  assert.deepEqual([done.kind, done.trace?.answer, done.trace?.kept], ['done', null, 20]);
  assert.equal(outcomeOf(() => ({ any: 'value' })).kind, 'done');
  assert.equal(
    outcomeOf(() => {
      throw new Error('no');
    }).kind,
    'retry',
  );
});

test('a target may return any thenable, and one that cannot be asked has failed', async () => {
  // biome-ignore lint/suspicious/noThenProperty: as query builders have one
  const later = { then: (resolve: () => void) => void setImmediate(resolve) };
  assert.equal((await attemptOf(() => later as unknown as Promise<void>).run()).outcome.kind, 'done');
  const bad = Object.defineProperty({}, 'then', {
    get() {
      throw new Error('no');
    },
  });
  assert.equal((await attemptOf(() => bad as Promise<void>).run()).outcome.kind, 'retry');
});

test('an attempt that is released while its target runs has ended as that, and what comes later is handled', async () => {
  for (const run of [() => {}, () => Promise.reject(new Error('later')), () => delay(1)]) {
    const attempt: Attempt = attemptOf(() => {
      attempt.release(new Error('stop'));
      return run();
    });
    assert.equal((await attempt.run()).outcome.kind, 'released');
  }
  await delay(5);
});

test('time that a target has spent before it returned a promise counts', async () => {
  const blocking: Target['run'] = (_job, signal) => {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
    return delay(60_000, undefined, { signal });
  };
  const { outcome } = await attemptOf(blocking, { timeout: 40 }).run();
  assert.equal(outcome.kind, 'retry');
  assert.ok((outcome.trace?.duration ?? 0) >= 50);
});
