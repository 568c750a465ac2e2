import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GraphQLResolveInfo } from 'graphql';
import { type Context, raise, same, schemaOf, ticks } from './compare.ts';

const sdl = `type Query { text: String int(by: Int): Int need: String! own: Query list: [Query] slow: String }
  type Mutation { text: String }`;

test('a field without a resolver reads a property or calls a method', async () => {
  class Source {
    readonly text = 'text';
    int(args: { readonly by: number }, { calls }: Context, info: GraphQLResolveInfo) {
      calls.push(JSON.stringify([args, info.fieldName, this instanceof Source]));
      return args.by;
    }
    get need() {
      return () => 'a getter that gives a function';
    }
    own(_args: unknown, { calls }: Context) {
      const source = Object.assign(() => {}, { text: 'a property of a function' });
      return {
        own: () => source,
        get text() {
          calls.push('read');
          return () => 'called';
        },
        get int() {
          calls.push('throws');
          return raise('getter');
        },
        slow: ticks(1, () => 'a promise'),
        need: null,
      };
    }
  }
  const schema = schemaOf(`type Root { top: Query empty: Query } ${sdl} schema { query: Root }`, {
    Root: { fields: { top: () => new Source(), empty: () => 'a text has no fields' } },
  });
  const own = 'own { text int slow own { own { need } } }';
  const { calls } = await same(schema, `{ top { text int(by: 3) need ${own} } empty { text } }`);
  // Read to see whether it is a function, and again to call it.
  assert.equal(calls.filter((call) => call === 'read').length, 2);
  await same(schema, `{ empty { text int } top { own { need text } } }`);
});

test('resolvers get the same info', async () => {
  const keys: string[] = [];
  const note = (_source: unknown, args: unknown, { calls }: Context, info: GraphQLResolveInfo) => {
    keys.push(Object.keys(info).join());
    calls.push(
      JSON.stringify([
        args,
        info.fieldName,
        info.fieldNodes.length,
        info.path,
        String(info.returnType),
        info.parentType.name,
        info.rootValue,
        info.operation.name?.value,
        Object.keys(info.fragments),
        Object.getPrototypeOf(info.fragments),
        info.variableValues.coerced,
        new Set([info.getAsyncHelpers(), info.getAsyncHelpers()]).size,
        info.getAbortSignal()?.aborted,
      ]),
    );
    return info.fieldName === 'int' ? 3 : info.fieldName === 'text' ? 'text' : {};
  };
  const list = (...given: Parameters<typeof note>) => [note(...given), ticks(1, () => ({}))];
  const schema = schemaOf(sdl, { Query: { fields: { text: note, int: note, own: note, list } } });
  await same(
    schema,
    'query Q($by: Int = 4) { t: text int(by: $by) own { ...F } list { text } own { text } } fragment F on Query { a: int text }',
  );
  assert.equal(new Set(keys).size, 1);
});

test('the signal is aborted when the result is made, with the same reason', async () => {
  const signals: AbortSignal[] = [];
  const schema = schemaOf(sdl, {
    Query: {
      fields: {
        text: (_source, _args, { calls }, { getAbortSignal }) => {
          const signal = getAbortSignal();
          assert.ok(signal !== undefined);
          signals.push(signal);
          signal.addEventListener('abort', () => calls.push(`aborted: ${String(signal.reason)}`));
          return 'text';
        },
        slow: (_source, _args, { calls }, { getAbortSignal }) => {
          calls.push(String(getAbortSignal()?.aborted));
          return ticks(50, () => {
            calls.push(String(getAbortSignal()?.aborted));
            return 'slow';
          });
        },
        need: () => ticks(2, () => raise('needed')),
      },
    },
  });
  for (const query of ['{ text }', '{ text slow }', '{ text slow need }', '{ text need }']) {
    const { calls } = await same(schema, query);
    assert.ok(
      calls.some((call) => call.startsWith('aborted: AbortError')),
      query,
    );
  }
  assert.ok(signals.every((signal) => signal.aborted));
});

test('promises that a resolver leaves behind are handled when it says so', async () => {
  const schema = schemaOf(sdl, {
    Query: {
      fields: {
        text: (_source, _args, _context, info) => {
          info.getAsyncHelpers().track([ticks(1, () => raise('tracked')), 'no promise', null]);
          return 'text';
        },
        slow: (_source, _args, _context, info) =>
          info
            .getAsyncHelpers()
            .promiseAll([ticks(1, () => raise('first')), ticks(9, () => raise('second')), 3])
            .then(() => 'never'),
        need: (_source, _args, _context, info) =>
          info
            .getAsyncHelpers()
            .promiseAll([ticks(1, () => 'a'), 'b'])
            .then((all) => all.join()),
      },
    },
  });
  const { result } = await same(schema, '{ text slow need }');
  assert.deepEqual(result.data, { text: 'text', slow: null, need: 'a,b' });
});

test('whatever can be there at once is', async () => {
  const schema = schemaOf(`${sdl} type Subscription { text: String }`, {
    Query: {
      fields: {
        text: () => 'text',
        own: () => ({}),
        list: () => [{}, {}],
        slow: () => ticks(1, () => 'slow'),
        need: () => raise('needed'),
      },
    },
  });
  const atOnce = [
    '{ text own { list { text } } }',
    '{ text need }',
    'mutation { text }',
    '{ own { list { need } } }',
  ];
  for (const query of atOnce) assert.equal((await same(schema, query)).atOnce, true, query);
  for (const query of ['{ slow }', '{ text list { slow } }', '{ own { slow need } slow }']) {
    assert.equal((await same(schema, query)).atOnce, false, query);
  }
  const refused = await same(schema, 'query ($v: Int!) { int(by: $v) }');
  assert.deepEqual([refused.atOnce, 'data' in refused.result], [true, false]);
});

test('an operation that the schema has no type for is told with the words of GraphQL.js', async () => {
  const schema = schemaOf('type Query { text: String }');
  const { result } = await same(schema, 'mutation { text }');
  assert.equal(result.errors?.[0]?.message, 'Schema is not configured to execute mutation operation.');
});

test('a field that the type does not have is not in the result', async () => {
  const { text } = await same(schemaOf('type Query { text: String }'), '{ text unknown { field } }');
  assert.equal(text, '{"data":{"text":null}}');
});
