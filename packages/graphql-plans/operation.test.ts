import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type GraphQLFieldConfig,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLSchema,
  GraphQLString,
  Kind,
  type OperationDefinitionNode,
  parse,
} from 'graphql';
import { defaultsOf } from '../../src/config/options/options.ts';
import { CooperativeScheduler } from '../../src/core/scheduler.ts';
import { Operation, type OperationOptions } from './operation.ts';

const LIMITS = defaultsOf('graphql');

type Fields = Record<string, GraphQLFieldConfig<unknown, unknown>>;

/** The only operation of a document, on a schema whose query and subscription have these fields. */
function operation(query: string, fields: Fields, meter?: OperationOptions['meter']): Operation {
  const document = parse(query);
  const definition = document.definitions.find(
    (node): node is OperationDefinitionNode => node.kind === Kind.OPERATION_DEFINITION,
  );
  assert.ok(definition !== undefined);
  const schema = new GraphQLSchema({
    query: new GraphQLObjectType({ name: 'Query', fields }),
    mutation: new GraphQLObjectType({ name: 'Mutation', fields }),
    subscription: new GraphQLObjectType({ name: 'Subscription', fields }),
  });
  return new Operation(document, definition, {
    schema,
    suggestions: true,
    limits: LIMITS,
    turns: new CooperativeScheduler(0, Number.POSITIVE_INFINITY),
    onPlanned() {},
    meter,
  });
}

const text = { type: GraphQLString };

test('no promise is made where no resolver makes one', () => {
  const result = operation('{ a }', { a: { ...text, resolve: () => 'b' } }).run(undefined, undefined);
  assert.deepEqual(JSON.stringify(result), '{"data":{"a":"b"}}');
});

test('each run has its own variables and context, however they overlap', async () => {
  const found: unknown[] = [];
  const a = {
    ...text,
    args: { id: text },
    resolve: async (_root: unknown, { id }: { id?: string }, context: unknown) => {
      await Promise.resolve();
      found.push([id, context]);
      return id;
    },
  };
  const running = operation('query ($id: String) { a(id: $id) }', { a });
  const ids = Array.from({ length: 20 }, (_, index) => String(index));
  const results = await Promise.all(ids.map((id) => running.run({ id }, `context ${id}`)));
  assert.deepEqual(
    results.map(({ data }) => data?.a),
    ids,
  );
  assert.deepEqual(
    found,
    ids.map((id) => [id, `context ${id}`]),
  );
});

test('arguments that are the same in each run are not the same object', () => {
  const given: object[] = [];
  const a = {
    ...text,
    args: { id: text },
    resolve(_root: unknown, args: Record<string, unknown>) {
      given.push({ ...args });
      args.id = 'changed';
    },
  };
  const running = operation('{ a(id: "1") }', { a });
  for (let time = 0; time < 3; time++) running.run(undefined, undefined);
  assert.deepEqual(given, [{ id: '1' }, { id: '1' }, { id: '1' }]);
});

test('whoever still works for a result that is out is told by the signal', async () => {
  const signals: (AbortSignal | undefined)[] = [];
  const late: (() => AbortSignal | undefined)[] = [];
  const fields: Fields = {
    slow: {
      ...text,
      resolve: (_root, _args, _context, info) => {
        signals.push(info.getAbortSignal());
        return new Promise(() => {});
      },
    },
    // Asks for it only when all is over.
    late: {
      ...text,
      resolve: (_root, _args, _context, info) => {
        late.push(info.getAbortSignal);
        return new Promise(() => {});
      },
    },
    fails: { type: new GraphQLNonNull(GraphQLString), resolve: () => Promise.reject(new Error('no')) },
  };
  for (const query of ['{ slow fails }', '{ late fails }']) {
    const result = await operation(query, fields).run(undefined, undefined);
    assert.equal(result.data, null);
  }
  assert.deepEqual(
    signals.map((signal) => signal?.aborted),
    [true],
  );
  assert.deepEqual(
    late.map((ask) => ask()?.aborted),
    [true],
  );
});

test('a streamed list whose items fail while it waits leaves nothing unhandled', async () => {
  const gate = Promise.withResolvers<void>();
  const a = {
    type: new GraphQLNonNull(GraphQLString),
    resolve: () => Promise.reject(new Error('no')),
  };
  const item = new GraphQLObjectType({ name: 'Item', fields: { a } });
  const list = {
    type: new GraphQLList(new GraphQLNonNull(item)),
    async *resolve() {
      yield {};
      await gate.promise;
      yield {};
    },
  };
  const result = operation('{ list { a } }', { list }).run(undefined, undefined);
  // Time for a rejection that nobody handles to be noticed.
  await new Promise((resolve) => setImmediate(resolve));
  gate.resolve();
  assert.deepEqual({ ...(await result).data }, { list: null });
});

test('a meter is made once, at the first run, and told of each', async () => {
  const records: string[] = [];
  let made = 0;
  const fields: Fields = {
    a: {
      ...text,
      args: { fail: text },
      resolve: (_root, { fail }) => (fail ? Promise.reject(new Error('no')) : 'b'),
    },
  };
  const running = operation('query Q($fail: String) { a(fail: $fail) }', fields, ({ name }) => {
    made++;
    assert.equal(name?.value, 'Q');
    return (began, outcome) => {
      assert.ok(began <= performance.now());
      records.push(outcome);
    };
  });
  assert.equal(made, 0);
  for (const variables of [{}, { fail: 'yes' }, { fail: 1 }, undefined])
    await running.run(variables, undefined);
  assert.deepEqual([made, records], [1, ['success', 'error', 'error', 'success']]);
});

test('each event of a subscription is a run of its own', async () => {
  const ticks: Fields = {
    tick: {
      type: new GraphQLNonNull(GraphQLString),
      args: { by: text },
      async *subscribe(_root, { by }) {
        for (const tick of [1, 2, 3]) yield `${tick}${by}`;
      },
      resolve: (tick) => (tick === '2x' ? null : String(tick)),
    },
  };
  const running = operation('subscription ($by: String) { tick(by: $by) }', ticks);
  const stream = await running.subscribe({ by: 'x' }, undefined);
  assert.ok(Symbol.asyncIterator in stream);
  const results: unknown[] = [];
  for await (const { data, errors } of stream) results.push([data?.tick, errors?.length]);
  assert.deepEqual(results, [
    ['1x', undefined],
    [undefined, 1],
    ['3x', undefined],
  ]);
  const refused = await running.subscribe({ by: 5 }, undefined);
  assert.ok('errors' in refused);
});
