import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFindOperation, type RequestParams } from '@portico/graphql-plans';
import fc from 'fast-check';
import fastify from 'fastify';
import { buildSchema, type ExecutionResult } from 'graphql';
import type { MaybePromise } from '../core/scheduler.ts';
import { graphql, withDefaults } from './graphql.ts';

const NAMES = ['A', 'B', 'C', 'Add'] as const;
/** One document with several operations: which one runs is for the name to say. */
const DOCUMENT = `
  query A { a: say(word: "a") }
  query B { b: say(word: "b") twice: say(word: "b") }
  query C($word: String!) { c: say(word: $word) }
  mutation Add { add }
`;
const WITHOUT_NAME = { data: undefined, errors: ['The operation to run cannot be determined'] };

/** An executor whose mutation counts how often it ran. */
function executor() {
  const schema = buildSchema(`
    type Query { say(word: String!): String, slow: String, fails: String! }
    type Mutation { add: Int!, addAndFail: Int! }
    type Subscription { said: String }
  `);
  let added = 0;
  const { Query, Mutation } = schema.getTypeMap() as Record<
    string,
    { getFields(): Record<string, { resolve?: unknown }> }
  >;
  const resolvers: Record<string, Record<string, unknown>> = {
    Query: {
      say: (_root: unknown, { word }: { word: string }) => word,
      slow: () => Promise.resolve('slow'),
    },
    Mutation: {
      add: () => ++added,
      addAndFail: () => {
        added++;
        throw new Error('after it was added');
      },
    },
  };
  for (const [name, type] of Object.entries({ Query, Mutation })) {
    for (const [field, resolve] of Object.entries(resolvers[name] ?? {})) {
      const found = type?.getFields()[field];
      if (found !== undefined) found.resolve = resolve;
    }
  }
  const find = createFindOperation(withDefaults({ schema }));
  const run = (query: string, more: Partial<RequestParams> = {}): MaybePromise<ExecutionResult> => {
    const operation = find({ query, operationName: undefined, variables: undefined, ...more });
    return 'errors' in operation ? operation : operation.run(more.variables, undefined);
  };
  return { schema, find, run, added: () => added };
}

/** A result as a client sees it, its errors by their messages. */
const seen = ({ data, errors }: ExecutionResult) => ({
  data: data === undefined ? undefined : (JSON.parse(JSON.stringify(data)) as unknown),
  errors: errors?.map(({ message }) => message),
});
const data = (values: object) => ({ data: values, errors: undefined });

test('of several operations the named one runs, in any order and however often', async () => {
  const { run, added } = executor();
  let expectedAdded = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.constantFrom(...NAMES), fc.string()), { maxLength: 12 }),
      async (calls) => {
        for (const [operationName, word] of calls) {
          const result = seen(await run(DOCUMENT, { operationName, variables: { word } }));
          if (operationName === 'Add') expectedAdded++;
          const expected = {
            A: { a: 'a' },
            B: { b: 'b', twice: 'b' },
            C: { c: word },
            Add: { add: expectedAdded },
          };
          assert.deepEqual(result, data(expected[operationName]));
        }
        assert.equal(added(), expectedAdded);
      },
    ),
    { numRuns: 30 },
  );
});

test('an unknown name, or none where there are several, runs nothing and has no data', async () => {
  const { run, added } = executor();
  for (const operationName of ['D', 'a', '', 'constructor', '__proto__', undefined]) {
    assert.deepEqual(seen(await run(DOCUMENT, { operationName })), WITHOUT_NAME, String(operationName));
  }
  assert.equal(added(), 0);
});

test('the only operation of a document runs by its name or without one', async () => {
  const { run } = executor();
  const named = 'query Only { say(word: "x") }';
  for (const operationName of ['Only', undefined]) {
    assert.deepEqual(seen(await run(named, { operationName })), data({ say: 'x' }));
  }
  assert.deepEqual(seen(await run(named, { operationName: 'Other' })), WITHOUT_NAME);
  assert.deepEqual(seen(await run('{ say(word: "y") }')), data({ say: 'y' }));
  assert.deepEqual(seen(await run('{ say(word: "y") }', { operationName: 'Other' })), WITHOUT_NAME);
});

test('a document without an operation is refused', async () => {
  const { run } = executor();
  const { data: nothing, errors } = await run('fragment F on Query { say(word: "x") }');
  assert.equal(nothing, undefined);
  assert.ok(errors !== undefined && errors.length > 0);
});

test('wrong variables run nothing, the first time and later', async () => {
  const { run } = executor();
  for (let i = 0; i < 4; i++) {
    for (const variables of [undefined, {}, { word: null }, { word: 1 }, { word: ['x'] }]) {
      const result = await run(DOCUMENT, { operationName: 'C', variables });
      assert.equal(result.data, undefined);
      assert.match(result.errors?.[0]?.message ?? '', /\$word/);
    }
    assert.deepEqual(
      seen(await run(DOCUMENT, { operationName: 'C', variables: { word: 'x', more: 1 } })),
      data({ c: 'x' }),
    );
  }
});

test('a mutation that fails has run once, however often its document was used', async () => {
  const { run, added } = executor();
  for (let i = 1; i <= 5; i++) {
    const result = await run('mutation { addAndFail }');
    assert.equal(result.data, null);
    assert.equal(result.errors?.length, 1);
    assert.equal(added(), i);
  }
});

test('mutations of one document run one after the other', async () => {
  const { run } = executor();
  for (let i = 0; i < 3; i++) {
    const result = seen(await run('mutation { one: add two: add three: add }'));
    assert.deepEqual(result, data({ one: i * 3 + 1, two: i * 3 + 2, three: i * 3 + 3 }));
  }
});

test('a result comes at once when no resolver is asynchronous', async () => {
  const { run } = executor();
  for (let i = 0; i < 3; i++) {
    assert.ok(!(run('{ say(word: "x") }') instanceof Promise));
    assert.deepEqual(seen(await run('{ slow }')), data({ slow: 'slow' }));
  }
});

test('a GET runs the queries of a document and none of its mutations', async () => {
  const { schema, added } = executor();
  await using app = fastify();
  await app.register(graphql, { schema });
  const get = (operationName: string) =>
    app.inject({ url: '/graphql', query: { query: DOCUMENT, operationName } });
  for (let i = 0; i < 3; i++) {
    assert.equal((await get('A')).body, '{"data":{"a":"a"}}');
    const refused = await get('Add');
    assert.equal(refused.statusCode, 405);
    assert.equal(refused.headers.allow, 'POST');
    assert.match(refused.body, /MUTATION_BY_GET/);
  }
  assert.equal(added(), 0);
  const post = { query: DOCUMENT, operationName: 'Add' };
  assert.equal(
    (await app.inject({ method: 'POST', url: '/graphql', payload: post })).body,
    '{"data":{"add":1}}',
  );
});
