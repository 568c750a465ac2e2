import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type ExecutionResult, type GraphQLSchema, parse, subscribe } from 'graphql';
import { type Context, operationOf, type Resolver, raise, schemaOf, shown, ticks } from './compare.ts';

type Opened = AsyncIterable<ExecutionResult> | ExecutionResult;

/** Opens a stream and reads it, up to so many results. */
async function read(opened: Opened, count: number): Promise<readonly string[]> {
  if (!(Symbol.asyncIterator in opened)) return [`refused ${shown(opened)}`];
  const iterator = opened[Symbol.asyncIterator]();
  const events: string[] = [];
  try {
    while (events.length < count) {
      const { done, value } = await iterator.next();
      if (done === true) return [...events, 'done'];
      events.push(shown(value));
    }
    await iterator.return?.();
    return [...events, `after the end: ${(await iterator.next()).done}`];
  } catch (error) {
    return [...events, `threw ${String(error)}`];
  }
}

/** Subscribes through GraphQL.js and through ours, and says what both gave. */
async function same(
  schema: GraphQLSchema,
  query: string,
  variables = {},
  count = 5,
): Promise<readonly string[]> {
  const theirs: Context = { calls: [] };
  const document = parse(query);
  const expected = await read(
    await subscribe({ schema, document, variableValues: variables, contextValue: theirs }),
    count,
  );
  for (let time = 0; time < 2; time++) {
    const ours: Context = { calls: [] };
    const operation = operationOf(schema, query);
    assert.deepEqual(await read(await operation.subscribe(variables, ours), count), expected);
    assert.deepEqual(ours.calls, theirs.calls);
  }
  return expected;
}

async function* events(values: readonly unknown[], calls: string[] = []) {
  try {
    for (const value of values) {
      calls.push('asked');
      yield value;
    }
  } finally {
    calls.push('closed');
  }
}

const event = { id: 1, late: ticks(2, () => 'late'), nested: { id: 2 } };
const sources: Readonly<Record<string, Resolver>> = {
  stream: (_source, _args, { calls }) => events([event, null, { id: null }, event], calls),
  promised: () => ticks(2, () => events([event])),
  empty: () => events([]),
  errors: () => events([new Error('an event'), { late: () => ticks(1, () => raise('late')) }, event]),
  async *fails() {
    yield event;
    raise('the source failed');
  },
  threw: () => raise('cannot be opened'),
  rejected: () => ticks(1, () => raise('cannot be opened')),
  gaveError: () => new Error('given'),
  laterGaveError: () => ticks(1, () => new Error('given')),
  none: () => null,
  noStream: () => ['no stream'],
  laterNoStream: () => ticks(1, () => 5),
  limited: (_source, { count }: { readonly count: number }, { calls }, { fieldName, path }) => {
    calls.push(JSON.stringify([count, fieldName, path]));
    return events(Array.from({ length: count }, () => event));
  },
};
const of = (result: string) =>
  Object.keys(sources)
    .map((name) => `${name}${name === 'limited' ? '(count: Int! = 2)' : ''}: ${result}`)
    .join(' ');
const schema = schemaOf(
  `type Query { a: Int } type Event { id: Int! late: String nested: Event } type Subscription { ${of('Event')} }`,
  {
    Subscription: {
      subscribe: sources,
      fields: Object.fromEntries(Object.keys(sources).map((name) => [name, (source) => source])),
    },
  },
);

describe('a subscription', () => {
  for (const name of Object.keys(sources)) {
    test(name, async () => {
      await same(schema, `subscription { ${name} { id late nested { id late } } }`);
      await same(schema, `subscription { alias: ${name} { id } }`, {}, 1);
    });
  }
});

test('arguments and variables of a subscription', async () => {
  const query = 'subscription S($count: Int!) { limited(count: $count) { id } }';
  assert.equal((await same(schema, query, { count: 3 })).length, 4);
  for (const variables of [{}, { count: 'x' }, { count: null }]) {
    const [refused] = await same(schema, query, variables);
    assert.match(String(refused), /^refused/);
  }
  await same(schema, 'subscription { limited(count: "x") { id } }');
  await same(schema, 'subscription ($skip: Boolean = false) { stream { id @skip(if: $skip) late } }', {
    skip: true,
  });
});

test('a schema without subscriptions', async () => {
  await same(schemaOf('type Query { a: Int }'), 'subscription { a }');
});

test('an event that fails leaves the others alone', async () => {
  const given = await same(schema, 'subscription { stream { id } }');
  assert.deepEqual(
    given.map((text) => text.includes('Cannot return null for non-nullable field Event.id.')),
    [false, false, true, false, false],
  );
});
