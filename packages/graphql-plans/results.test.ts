import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { defaultsOf } from '../../src/config/options/options.ts';
import { CooperativeScheduler } from '../../src/core/scheduler.ts';
import { JsonList, jsonWithLists, ResultBudget } from './results.ts';

const LIMITS = defaultsOf('graphql');

describe('result budget', () => {
  const budgetOf = (turns: CooperativeScheduler) => new ResultBudget(LIMITS, turns);

  /** Runs that take turn after turn until they are closed, and who had each turn. */
  function run(budgets: Readonly<Record<string, ResultBudget>>): readonly string[] {
    const had: string[] = [];
    for (const [name, budget] of Object.entries(budgets)) {
      budget.isSpent();
      const go = (): unknown =>
        budget.turn().then(
          () => had.push(name) && go(),
          () => undefined,
        );
      go();
    }
    return had;
  }

  test('runs take turns; with too much text the one that began first has all of them until it is closed', async () => {
    const turns = new CooperativeScheduler(100);
    const budgets = { a: budgetOf(turns), b: budgetOf(turns) };
    const had = run(budgets);
    for (let i = 0; i < 4; i++) await nextTurn();
    assert.deepEqual(had, ['a', 'b', 'a', 'b']);
    budgets.b.hold(101);
    for (let i = 0; i < 3; i++) await nextTurn();
    assert.deepEqual(had.slice(4), ['a', 'a', 'a']);
    budgets.a.close();
    for (let i = 0; i < 4; i++) await nextTurn();
    assert.deepEqual([...new Set(had.slice(7))], ['b']);
    budgets.b.close();
    await nextTurn();
  });

  test('a result that begins while there is too much text has no slice before its first turn', () => {
    const turns = new CooperativeScheduler(100, 60_000);
    const early = budgetOf(turns);
    for (let look = 0; look < 3; look++) assert.equal(early.isSpent(), false);
    early.hold(101);
    const late = budgetOf(turns);
    assert.deepEqual([late.isSpent(), late.isSpent()], [false, true]);
    assert.equal(early.isSpent(), false);
    early.close();
    const later = budgetOf(turns);
    for (let look = 0; look < 3; look++) assert.equal(later.isSpent(), false);
  });
});

describe('json list', () => {
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
        const turns = new CooperativeScheduler(0);
        const budget = new ResultBudget(LIMITS, turns);
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
});
