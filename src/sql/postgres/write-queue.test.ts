import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { unobserved } from '../batch-queue.ts';
import { writeQueue } from './write-queue.ts';

function serverError(code: string): Error {
  const error = new pg.DatabaseError(`the server says ${code}`, 0, 'error');
  error.code = code;
  return error;
}

/** A server that refuses statements with a negative number in them. */
function refusing(code: string, sizeOf = (_: number) => 0) {
  const batches: (readonly number[])[] = [];
  const run = async (writes: readonly number[]) => {
    batches.push(writes);
    if (writes.some((write) => write < 0)) throw serverError(code);
    return writes.map((write) => write * 2);
  };
  return { batches, queue: writeQueue(run, { observer: unobserved, maxWait: 500, sizeOf }) };
}

async function submitAll(queue: { submit(write: number): Promise<number> }, writes: readonly number[]) {
  const settled = await Promise.allSettled(writes.map((write) => queue.submit(write)));
  return settled.map((result) => (result.status === 'fulfilled' ? result.value : String(result.reason)));
}

test('a value that the server refuses fails alone', async () => {
  const { queue } = refusing('22021');
  const results = await submitAll(queue, [1, 2, -3, 4, 5, -6]);
  const refusal = 'StoreUnavailableError: The write failed: the server says 22021';
  assert.deepEqual(results, [2, 4, refusal, 8, 10, refusal]);
});

test('a batch that failed for another reason is not sent again', async () => {
  const { queue, batches } = refusing('53100');
  const results = await submitAll(queue, [1, -2, 3]);
  assert.equal(batches.length, 1);
  assert.ok(results.every((result) => /outcome is unknown: the server says 53100/.test(String(result))));
});

test('no statement is larger than the server takes, unless one write is', async () => {
  const MIB = 1024 * 1024;
  const { queue, batches } = refusing('22021', (write) => write * MIB);
  await submitAll(queue, [10, 20, 10, 100, 1, 1]);
  assert.ok(
    batches.every((batch) => batch.length === 1 || batch.reduce((a, b) => a + b) <= 32),
    String(batches),
  );
  assert.deepEqual(batches.flat(), [10, 20, 10, 100, 1, 1]);
});
