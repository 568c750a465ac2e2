import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Resolver, raise, same, schemaOf, ticks } from './compare.ts';

const step =
  (count: number, value: () => unknown): Resolver =>
  (_source, { as }: { readonly as?: string }, { calls }, { path }) => {
    const name = as ?? String(path.key);
    calls.push(`${name} begins`);
    const end = () => {
      calls.push(`${name} ends`);
      return value();
    };
    return count === 0 ? end() : ticks(count, end);
  };
const fields: Record<string, Resolver> = {
  now: step(0, () => 'now'),
  slow: step(9, () => 'slow'),
  soon: step(1, () => 'soon'),
  fails: step(0, () => raise('failed')),
  failsLater: step(3, () => raise('failed later')),
  none: step(2, () => null),
  needFails: step(2, () => raise('needed')),
  tree: step(1, () => ({ deep: 'x' })),
};
const leaf = (type: string) =>
  ['now', 'slow', 'soon', 'fails', 'failsLater', 'none']
    .map((name) => `${name}(as: String): ${type}`)
    .join(' ');
const schema = schemaOf(
  `type Query { ok: String } type Mutation { ${leaf('String')} needFails: String! tree: Tree! }
   type Tree { deep: String needFails: String! ${leaf('String')} tree: Tree }`,
  { Mutation: { fields }, Tree: { fields } },
);

test('each step begins when the one before it has ended', async () => {
  const { calls } = await same(schema, 'mutation { a: slow b: now c: soon d: now e: slow }');
  assert.deepEqual(
    calls,
    ['a', 'b', 'c', 'd', 'e'].flatMap((name) => [`${name} begins`, `${name} ends`]),
  );
  assert.equal((await same(schema, 'mutation { now a: now }')).atOnce, true);
});

test('a step that fails is null, and the next ones run', async () => {
  const { result } = await same(
    schema,
    'mutation { fails slow failsLater now none a: failsLater b: fails soon }',
  );
  assert.equal(result.errors?.length, 4);
});

test('a step that may not fail ends the mutation', async () => {
  const { result, calls } = await same(schema, 'mutation { slow fails needFails soon now }');
  assert.equal(result.data, null);
  assert.ok(!calls.some((call) => call.startsWith('soon')));
  await same(schema, 'mutation { now needFails now2: now }');
});

test('what a step leaves behind goes on beside the next ones', async () => {
  for (const deep of [
    'slow',
    'tree { slow }',
    'tree { tree { tree { slow now } } }',
    'tree { soon tree { soon } }',
  ]) {
    await same(
      schema,
      `mutation { a: tree { needFails ${deep} } b: soon c: tree { failsLater ${deep} } d: soon }`,
    );
    await same(
      schema,
      `mutation { a: tree { tree { needFails x: ${deep} } } b: soon c: slow d: now e: soon }`,
    );
  }
});

test('the next step begins in the same microtask as in GraphQL.js', async () => {
  const chain = (length: number) => `${'tree { '.repeat(length)} now ${'}'.repeat(length)}`;
  const next = [
    'a: soon',
    'a: tree { now }',
    'a: tree { tree { soon } }',
    'a: failsLater',
    'a: now b: soon',
    'a: tree { none soon }',
  ];
  for (const then of next) {
    for (let length = 1; length < 7; length++) {
      await same(
        schema,
        `mutation { x: tree { tree { needFails } y: ${chain(length)} } ${then} c: soon d: now }`,
      );
      await same(
        schema,
        `mutation { x: tree { z: tree { needFails y: ${chain(length)} } } ${then} c: soon d: now }`,
      );
    }
  }
});

test('fields of fragments and fields that are merged are steps in their order', async () => {
  await same(
    schema,
    `mutation { ...F now tree { now } ... on Mutation { slow } tree { slow } } fragment F on Mutation { soon tree { fails } slow }`,
  );
});
