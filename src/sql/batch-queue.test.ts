import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { StoreUnavailableError } from '../core/errors.ts';
import { BatchQueue, type BatchQueueOptions, type BatchResult } from './batch-queue.ts';

/** An engine whose batches end when the test says so. */
function manualEngine(
  concurrency: number,
  options: Pick<BatchQueueOptions<number, number>, 'maxWait' | 'minBatch' | 'eagerBatch'> = {},
) {
  const sent: { writes: readonly number[]; done: (result: BatchResult<number>) => void }[] = [];
  const queue = new BatchQueue<number, number>({
    send: (writes, done) => sent.push({ writes, done }),
    concurrency,
    ...options,
  });
  return { queue, sent };
}

const tick = () => new Promise((resolve) => setImmediate(resolve));
const echo = (writes: readonly number[]): BatchResult<number> => ({
  results: writes.map((rows) => ({ rows })),
});

test('the writes of one tick form one batch, and a free slot sends the next batch', async () => {
  const { queue, sent } = manualEngine(2);
  const first = [queue.submit(1), queue.submit(2)];
  await tick();
  const second = [queue.submit(3)];
  await tick();
  const third = [queue.submit(4), queue.submit(5)];
  await tick();
  assert.deepEqual(
    sent.map(({ writes }) => writes),
    [[1, 2], [3]],
  );
  sent[1]?.done(echo([3]));
  assert.deepEqual(await Promise.all(second), [3]);
  assert.deepEqual(sent[2]?.writes, [4, 5], 'the freed slot takes what gathered');
  sent[0]?.done(echo([1, 2]));
  sent[2]?.done(echo([4, 5]));
  assert.deepEqual(await Promise.all([...first, ...third]), [1, 2, 4, 5]);
  await queue.idle();
});

test('a few writes wait for the batch in flight, enough of them do not', async () => {
  const { queue, sent } = manualEngine(3, { minBatch: 3 });
  const writes = [queue.submit(1)];
  await tick();
  writes.push(queue.submit(2), queue.submit(3));
  await tick();
  assert.deepEqual(sent.length, 1);
  writes.push(queue.submit(4));
  await tick();
  assert.deepEqual(sent[1]?.writes, [2, 3, 4]);
  writes.push(queue.submit(5));
  await tick();
  assert.equal(sent.length, 2);
  sent[0]?.done(echo([1]));
  assert.deepEqual(sent[2]?.writes, [5]);
  sent[1]?.done(echo([2, 3, 4]));
  sent[2]?.done(echo([5]));
  assert.deepEqual(await Promise.all(writes), [1, 2, 3, 4, 5]);
});

test('with nothing in flight an eager batch is sent before the tick ends, the rest at its end', async () => {
  const { queue, sent } = manualEngine(2, { minBatch: 2, eagerBatch: 3 });
  const writes = [1, 2, 3, 4, 5, 6].map((write) => queue.submit(write));
  const sentNow = () => sent.map((batch) => batch.writes);
  assert.deepEqual(sentNow(), [[1, 2, 3]]);
  await tick();
  assert.deepEqual(sentNow(), [
    [1, 2, 3],
    [4, 5, 6],
  ]);
  for (const { writes: batch, done } of sent) done(echo(batch));
  assert.deepEqual(await Promise.all(writes), [1, 2, 3, 4, 5, 6]);
  await queue.idle();
});

test('a write resolves to its rows mapped by `read`', async () => {
  const { queue, sent } = manualEngine(1);
  const writes = [queue.submit(1, (rows) => `one: ${rows}`), queue.submit(2)];
  await tick();
  sent[0]?.done(echo([1, 2]));
  assert.deepEqual(await Promise.all(writes), ['one: 1', 2]);
});

test('a write that waits too long is refused and never sent; a sent one has no limit', async () => {
  const { queue, sent } = manualEngine(1, { maxWait: 20 });
  const sentWrite = queue.submit(1);
  await tick();
  const late = [queue.submit(2), queue.submit(3)];
  for (const each of late) await assert.rejects(each, /waited longer than 20 ms/);
  sent[0]?.done(echo([1]));
  assert.equal(await sentWrite, 1);
  const next = queue.submit(4);
  await tick();
  assert.deepEqual(sent[1]?.writes, [4]);
  sent[1]?.done(echo([4]));
  assert.equal(await next, 4);
});

test('an error of the engine is passed on unchanged, a string is wrapped', async () => {
  const { queue, sent } = manualEngine(1);
  const error = new StoreUnavailableError('as it is');
  const writes = [queue.submit(1), queue.submit(2), queue.submit(3)];
  await tick();
  sent[0]?.done({ results: [{ error }, { error: 'why' }] });
  const [own, text, missing] = await Promise.allSettled(writes);
  assert.equal(own?.status === 'rejected' && own.reason, error);
  assert.match(String(text?.status === 'rejected' && text.reason), /The write failed: why/);
  assert.match(String(missing?.status === 'rejected' && missing.reason), /no result/);
});

test('writes that are submitted together resolve together, each to its own result', async () => {
  const { queue, sent } = manualEngine(1, { eagerBatch: 3 });
  const error = new StoreUnavailableError('as it is');
  const all = queue.submitAll([1, 2, 3], (rows, nth) => `${nth}: ${rows}`);
  assert.deepEqual(sent[0]?.writes, [1, 2, 3], 'enough of them are sent at once');
  sent[0]?.done({ results: [{ rows: 10 }, { error }, { rows: 30 }] });
  assert.deepEqual(await all, ['0: 10', error, '2: 30']);
  assert.deepEqual(await queue.submitAll([], () => 0), []);
  const waiting = queue.submitAll([4, 5], () => 0);
  queue.fail(error);
  assert.deepEqual(await waiting, [error, error]);
  assert.deepEqual(await queue.submitAll([6], () => 0), [error]);
});

test('property: each write settles once, the concurrency is never exceeded, and idle resolves last', async () => {
  const step = fc.constantFrom(
    'write' as const,
    'answer' as const,
    'answer the last' as const,
    'tick' as const,
  );
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 4 }),
      fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined }),
      fc.array(step, { maxLength: 80 }),
      async (concurrency, minBatch, eagerBatch, steps) => {
        const { queue, sent } = manualEngine(concurrency, {
          minBatch,
          ...(eagerBatch === undefined ? {} : { eagerBatch }),
        });
        const open = () => sent.filter((batch) => !answered.has(batch));
        const answered = new Set<unknown>();
        const results: Promise<number>[] = [];
        const answer = (batch = open()[0]) => {
          if (batch === undefined) return;
          answered.add(batch);
          batch.done(echo(batch.writes));
        };
        for (const kind of steps) {
          if (kind === 'write') results.push(queue.submit(results.length));
          else if (kind === 'tick') await tick();
          else answer(kind === 'answer' ? undefined : open().at(-1));
          assert.ok(open().length <= concurrency);
        }
        const idle = queue.idle();
        while (answered.size < sent.length || sent.flatMap(({ writes }) => writes).length < results.length) {
          await tick();
          answer();
        }
        await idle;
        assert.deepEqual(
          await Promise.all(results),
          results.map((_, i) => i),
        );
      },
    ),
    { numRuns: 200 },
  );
});
