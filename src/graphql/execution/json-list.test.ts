import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Turns } from '../../core/turns.ts';
import { JsonList, jsonWithLists } from './json-list.ts';
import { DEFAULT_RESULT_LIMITS, ResultBudget } from './result-budget.ts';

/** A value, and where it has lists that become text: each as the batches that are added one by one. */
interface Batches {
  readonly batches: readonly (readonly unknown[])[];
}

const isBatches = (value: unknown): value is Batches =>
  typeof value === 'object' && value !== null && 'batches' in value;

const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.oneof(fc.string({ unit: 'grapheme' }), fc.double({ noNaN: true }), fc.constant(null), fc.date()),
    fc.array(tie('tree'), { maxLength: 3 }),
    fc.dictionary(
      fc.string().filter((key) => key !== '__proto__' && key !== 'batches'),
      tie('tree'),
      { maxKeys: 3 },
    ),
    fc.record({ batches: fc.array(fc.array(tie('tree'), { maxLength: 3 }), { maxLength: 3 }) }),
  ),
}));

/** The value with arrays, or with what `make` makes of batches. */
function build(value: unknown, make: (batches: readonly (readonly unknown[])[]) => unknown): unknown {
  if (isBatches(value)) {
    return make(value.batches.map((batch) => batch.map((item) => build(item, make))));
  }
  if (Array.isArray(value)) return value.map((item) => build(item, make));
  if (typeof value !== 'object' || value === null || value instanceof Date) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, build(part, make)]));
}

test('the text is the same as that of arrays, and its bytes are counted once', () => {
  fc.assert(
    fc.property(tree, (value) => {
      const turns = new Turns(0);
      const budget = new ResultBudget(DEFAULT_RESULT_LIMITS, turns);
      let lists = 0;
      const withLists = build(value, (batches) => {
        const list = new JsonList(budget);
        for (const batch of batches) list.addWithLists(batch);
        lists++;
        return list;
      });
      const text = JSON.stringify(build(value, (batches) => batches.flat()));
      assert.equal(jsonWithLists(withLists).toString(), text);
      const held = turns.held;
      assert.ok(held <= Buffer.byteLength(text), `${held} bytes of ${text}`);
      if (lists === 0) assert.equal(held, 0);
      budget.close();
      assert.equal(turns.held, 0);
    }),
  );
});
