import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { anyCharacter } from '../../../test/support/random.ts';
import type { BatchResult } from '../batch-queue.ts';
import type { StepRows, Write } from './batch.ts';
import { packResults, packWrites, unpackResults, unpackWrites } from './packed.ts';

const text = fc.string({ unit: anyCharacter });
const value = fc.oneof(fc.constant(null), fc.double(), fc.bigInt(), text, fc.uint8Array());
const statement = text;
const writes = fc.array(
  fc.array(fc.record({ statement, values: fc.array(value) }, { noNullPrototype: true })),
);

test('writes come out as they went in', () => {
  fc.assert(
    fc.property(writes, (sent: readonly Write[]) => {
      assert.deepEqual(unpackWrites(structuredClone(packWrites(sent))), sent);
    }),
  );
});

test('of a piece of a larger buffer only the piece travels', () => {
  const pool = new Uint8Array(65_536).fill(1);
  const packed = packWrites([
    [{ statement: 'createUser', values: [pool.subarray(3, 5), 'a', pool.subarray(9, 10)] }],
  ]);
  assert.equal(packed.bytes.buffer.byteLength, 3);
});

test('the results of each batch come out as they went in, and all but the last go on', () => {
  const rows = fc.array(fc.array(fc.array(fc.oneof(fc.constant(null), fc.double(), text))));
  const result = fc.oneof(
    fc.record({ rows }, { noNullPrototype: true }),
    fc.record({ error: text }, { noNullPrototype: true }),
  );
  const batches = fc.array(fc.array(result), { minLength: 1 });
  const fatal = fc.option(fc.record({ fatal: text }, { noNullPrototype: true }), { nil: {} });
  fc.assert(
    fc.property(batches, fatal, (sent: readonly BatchResult<StepRows>['results'][], failure) => {
      const lengths = sent.map(({ length }) => length);
      const packed = packResults({ results: sent.flat(), ...failure }, lengths);
      const last = sent.length - 1;
      assert.deepEqual(
        unpackResults(structuredClone(packed)),
        sent.map((results, i) => ({ results, ...failure, ...(i < last ? { commitContinues: true } : {}) })),
      );
    }),
  );
});
