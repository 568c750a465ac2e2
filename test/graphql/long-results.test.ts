import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { buildSchema, type ExecutionResult, execute as executeReference, Kind, parse } from 'graphql';
import { execute } from '../../packages/graphql-plans/execute.ts';
import { Plans } from '../../packages/graphql-plans/plans.ts';
import { ResultBudget, type ResultLimits, resultText } from '../../packages/graphql-plans/results.ts';
import { defaultsOf } from '../../src/config/options/options.ts';
import { CooperativeScheduler } from '../../src/core/scheduler.ts';
import { rounds } from '../support/proof-settings.ts';

const LIMITS = defaultsOf('graphql');

const schema = buildSchema(`
  type Query { all: [Thing], strict: [Thing!]!, words: [String!], grid: [[Int]] }
  type Thing { id: ID!, text: String, needed: String!, all: [Thing], strict: [Thing!]!, words: [String!], grid: [[Int]] }
`);

/** How a list, or a value, is given. */
type Way = 'at once' | 'promise' | 'iterator' | 'async iterator';

interface Shape {
  readonly way: Way;
  readonly items: number;
  readonly inner: number;
  /** The items that fail, of a text that may be null and of one that may not. */
  readonly failing: ReadonlySet<number>;
  readonly missing: ReadonlySet<number>;
}

const positions = fc.uniqueArray(fc.nat(3_000), { maxLength: 2 }).map((all) => new Set(all));
const shape: fc.Arbitrary<Shape> = fc.record({
  way: fc.constantFrom<Way[]>('at once', 'promise', 'iterator', 'async iterator'),
  items: fc.integer({ min: 0, max: 2_500 }),
  inner: fc.integer({ min: 0, max: 3 }),
  failing: positions,
  missing: fc.oneof({ weight: 3, arbitrary: fc.constant(new Set<number>()) }, positions),
});

/** Gives a list in a way. */
function give(way: Way, list: readonly unknown[]): unknown {
  if (way === 'at once') return list;
  if (way === 'promise') return nextTurn(list);
  if (way === 'iterator') return new Set(list).values();
  return (async function* () {
    for (const [index, item] of list.entries()) {
      if (index % 500 === 0) await nextTurn();
      yield item;
    }
  })();
}

function rootOf({ way, items, inner, failing, missing }: Shape): object {
  const thing = (index: number, depth: number): object => ({
    id: index,
    text: () => {
      if (failing.has(index)) throw new Error(`no ${index}`);
      return index % 7 === 0 && way === 'promise' ? Promise.resolve(`text ${index}`) : `text "${index}" é`;
    },
    needed: missing.has(index) ? null : 'needed',
    ...lists(depth, inner),
  });
  const lists = (depth: number, count: number): object => {
    const things = () =>
      give(
        depth === 0 ? way : 'at once',
        depth > 1 ? [] : Array.from({ length: count }, (_, i) => thing(i, depth + 1)),
      );
    return {
      all: things,
      strict: things,
      words: () =>
        give(
          depth === 0 ? way : 'at once',
          Array.from({ length: count }, (_, i) => `word ${i} é`),
        ),
      grid: () => Array.from({ length: count }, (_, i) => [i, null, -i]),
    };
  };
  return lists(0, items);
}

const RUNS = rounds(60);

const things = '{ id text needed all { id text } strict { needed } words grid }';
const documents = [
  `{ all ${things} }`,
  `{ strict ${things} words }`,
  '{ words grid all { text strict { id } } }',
  `{ a: all ${things} b: all { id } strict { id } }`,
];

/** Runs a document by our plans; a slice of no time lets each 32 KiB of the result have a turn of its own. */
async function run(query: string, rootValue: unknown, limits: Partial<ResultLimits> = {}) {
  const document = parse(query);
  const [definition] = document.definitions;
  assert.ok(definition?.kind === Kind.OPERATION_DEFINITION);
  const turns = new CooperativeScheduler(1_000, 0);
  const budget = new ResultBudget({ ...LIMITS, ...limits }, turns);
  const plans = new Plans({ schema, document, definition, hideSuggestions: false, onPlanned() {} });
  const variables = { sources: {}, coerced: {} };
  const result = await execute(
    { schema, definition, variables, context: undefined, rootValue, budget, isTraced: false },
    plans,
  );
  assert.equal(turns.held, 0, 'nothing is held for a result that is done');
  return { isText: budget.holdsText, text: resultText(result).toString() };
}

/** Where the errors are. Which of several makes a whole result null depends on the turns. */
const pathsOf = ({ data, errors }: ExecutionResult) =>
  data == null ? errors?.length : errors?.map(({ path }) => JSON.stringify(path)).sort();

test('a long result is the same as that of GraphQL.js', { timeout: 600_000 }, async () => {
  let long = 0;
  await fc.assert(
    fc.asyncProperty(shape, fc.constantFrom(...documents), async (shape, query) => {
      const { isText, text } = await run(query, rootOf(shape));
      if (isText) long++;
      const expected = await executeReference({ schema, document: parse(query), rootValue: rootOf(shape) });
      const reference = JSON.parse(JSON.stringify({ data: expected.data })) as ExecutionResult;
      const result = JSON.parse(text) as ExecutionResult;
      assert.deepEqual(result.data, reference.data);
      assert.deepEqual(pathsOf(result), pathsOf(expected));
    }),
    { numRuns: RUNS },
  );
  assert.ok(long > RUNS / 4, `${long} of ${RUNS} became text`);
});

test('a promise that fails before the turn of its item is an error of that item', async () => {
  for (const give of [(list: readonly unknown[]) => list, (list: readonly unknown[]) => new Set(list)]) {
    const things = Array.from({ length: 10_000 }, (_, id) => ({ id: `${id}` }));
    const all = give([...things, Promise.reject(new Error('failed long ago'))]);
    const { isText, text } = await run('{ all { id } }', { all });
    assert.ok(isText);
    const result = JSON.parse(text) as ExecutionResult;
    assert.deepEqual(result.data, { all: [...things, null] });
    assert.deepEqual(result.errors?.[0]?.path, ['all', things.length]);
  }
});

test('past a limit the result is one error, and nothing more is made', async () => {
  for (const [limits, limit] of [
    [{ maxResultValues: 5_000 }, 'maxResultValues'],
    [{ maxResultBytes: 50_000 }, 'maxResultBytes'],
  ] as const) {
    let made = 0;
    const all = Array.from({ length: 100_000 }, () => ({
      id: 1,
      text: () => {
        made++;
        return 'a text of some length';
      },
      needed: 'x',
    }));
    const { text } = await run('{ a: all { text needed } all { text } words }', { all, words: [] }, limits);
    const { data, errors } = JSON.parse(text) as ExecutionResult;
    assert.equal(data, null);
    assert.deepEqual(
      errors?.map(({ extensions }) => extensions),
      [{ code: 'LIMIT_EXCEEDED', limit }],
    );
    for (let i = 0; i < 5; i++) await nextTurn();
    assert.ok(made < 10_000, `${made} of 100,000 items`);
  }
});

test('escapes count: text of control characters is larger than it seems', async () => {
  const all = Array.from({ length: 1_000 }, () => ({ text: '\u0001'.repeat(100) }));
  const { text } = await run('{ all { text } }', { all }, { maxResultBytes: 300_000 });
  assert.match(text, /LIMIT_EXCEEDED/);
});
