import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { StoreUnavailableError } from '../../core/errors.ts';
import type { BatchResult } from '../batch-queue.ts';
import type { StepRows, Write } from './batch.ts';
import { WriteQueue } from './write-queue.ts';

/** A connection whose batches end when the test says so. */
function manualConnection() {
  const sent: { writes: readonly Write[]; done: (result: BatchResult<StepRows>) => void }[] = [];
  const fatal: StoreUnavailableError[] = [];
  const queue = new WriteQueue({
    send: (writes, done) => sent.push({ writes, done }),
    onFatal: (error) => fatal.push(error),
  });
  return { queue, sent, fatal };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));
/** Answers every write with its own first value. */
const echo = (writes: readonly Write[]): BatchResult<StepRows> => ({
  results: writes.map(([step]) => ({ rows: [[[Number(step?.values[0])]]] })),
});

test('the writes of one tick form one batch, later ones the next', async () => {
  const { queue, sent } = manualConnection();
  const first = [queue.write('removeUser', 1), queue.write('removeUser', 2)];
  await turn();
  const second = [queue.write('removeUser', 3), queue.write('removeUser', 4)];
  await turn();
  assert.equal(sent.length, 1, 'the second batch waits for the first');
  sent[0]?.done(echo(sent[0].writes));
  assert.deepEqual(await Promise.all(first), [[[1]], [[2]]]);
  assert.equal(sent.length, 2);
  sent[1]?.done(echo(sent[1].writes));
  assert.deepEqual(await Promise.all(second), [[[3]], [[4]]]);
  await queue.idle();
});

test('nothing is answered before its batch is', async () => {
  const { queue, sent } = manualConnection();
  let answered = false;
  const write = queue.write('removeUser', 1).then(() => {
    answered = true;
  });
  await turn();
  await turn();
  assert.equal(answered, false);
  sent[0]?.done(echo(sent[0].writes));
  await write;
});

test('a fatal result refuses waiting and later writes, once', async () => {
  const { queue, sent, fatal } = manualConnection();
  const inBatch = queue.write('removeUser', 1);
  await turn();
  const waiting = queue.write('removeUser', 2);
  sent[0]?.done({ results: [{ error: 'disk' }], fatal: 'fsync' });
  await assert.rejects(inBatch, StoreUnavailableError);
  await assert.rejects(waiting, StoreUnavailableError);
  await assert.rejects(queue.write('removeUser', 3), StoreUnavailableError);
  await turn();
  assert.equal(sent.length, 1, 'no batch follows');
  assert.equal(fatal.length, 1);
  await queue.idle();
});

test('a closed queue refuses writes without calling it a failure', async () => {
  const { queue, fatal } = manualConnection();
  await queue[Symbol.asyncDispose]();
  await assert.rejects(queue.write('removeUser', 1), /closed/);
  assert.deepEqual(fatal, []);
});

test('any sequence of writes and answers settles each write once, in order, with its own result', async () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('write' as const), fails: fc.boolean() }),
    fc.record({ kind: fc.constant('answer' as const) }),
    fc.record({ kind: fc.constant('turn' as const) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const { queue, sent } = manualConnection();
      const settled: number[] = [];
      const failing = new Set<number>();
      let next = 0;
      let answeredBatches = 0;
      const writes: Promise<void>[] = [];
      const answer = () => {
        const batch = sent[answeredBatches];
        if (batch === undefined) return;
        answeredBatches++;
        batch.done({
          results: batch.writes.map(([step]) => {
            const value = Number(step?.values[0]);
            return failing.has(value) ? { error: 'bad' } : { rows: [[[value]]] };
          }),
        });
      };
      for (const { kind, ...rest } of steps) {
        if (kind === 'write') {
          const id = next++;
          if ('fails' in rest && rest.fails) failing.add(id);
          writes.push(
            queue.write('removeUser', id).then(
              (rows) => {
                assert.deepEqual(rows, [[id]]);
                assert.ok(!failing.has(id));
                settled.push(id);
              },
              () => {
                assert.ok(failing.has(id));
                settled.push(id);
              },
            ),
          );
        } else if (kind === 'answer') answer();
        else await turn();
        assert.ok(sent.length - answeredBatches <= 1, 'one batch at a time');
      }
      while (settled.length < next) {
        await turn();
        answer();
        await turn();
      }
      await Promise.all(writes);
      assert.deepEqual(
        settled,
        settled.toSorted((a, b) => a - b),
      );
    }),
    { numRuns: 200 },
  );
});
