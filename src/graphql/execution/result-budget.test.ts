import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Turns } from '../../core/turns.ts';
import { DEFAULT_RESULT_LIMITS, ResultBudget } from './result-budget.ts';

const budgetOf = (turns: Turns) => new ResultBudget(DEFAULT_RESULT_LIMITS, turns);

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
  const turns = new Turns(100);
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
  const turns = new Turns(100, 60_000);
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
