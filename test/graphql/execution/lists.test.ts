import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { type Context, operationOf, type Resolver, raise, same, schemaOf, ticks } from './compare.ts';

const rejected = (message: string) => ticks(1, () => raise(message));
const slow = (message: string) => ticks(30, () => raise(message));

/** An iterator that is no generator; `fails` tells what its call of this number does. */
function counted({ calls }: Context, length: number, fails: (index: number) => boolean = () => false) {
  let index = -1;
  return {
    [Symbol.iterator]() {
      calls.push('opened');
      return this;
    },
    next() {
      index += 1;
      calls.push(`next ${index}`);
      if (fails(index)) raise(`failed at ${index}`);
      return index < length ? { done: false, value: `v${index}` } : { done: true, value: undefined };
    },
  };
}

/** The same, asynchronous. */
function streamed(context: Context, length: number, fails?: (index: number) => boolean, end?: () => unknown) {
  const iterator = counted(context, length, fails);
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: () => ticks(1, () => iterator.next()),
    ...(end !== undefined && {
      return() {
        context.calls.push('closed');
        return end();
      },
    }),
  };
}

/** Lists of text, by what they are. */
const lists: Readonly<Record<string, Resolver>> = {
  array: () => ['a', 'b'],
  empty: () => [],
  nulls: () => ['a', null, undefined, 'b'],
  holes: () => Array.from({ length: 3 }),
  errors: () => ['a', new Error('in the list'), rejected('rejected'), 'b'],
  wrongValues: () => ['a', { text: 1 }, Symbol('s'), 'b'],
  promises: () => [ticks(3, () => 'a'), ticks(1, () => null), 'c'],
  promised: () => ticks(2, () => ['a', ticks(1, () => 'b')]),
  set: () => new Set(['a', ticks(1, () => 'b')]),
  text: () => 'no list',
  number: () => 5,
  object: () => ({ length: 1, 0: 'a' }),
  iteratorOnly: () => ({ next: () => ({ done: true }) }),
  callable: () =>
    Object.assign(() => {}, {
      *[Symbol.iterator]() {
        yield 'a';
      },
    }),
  callableStream: () =>
    Object.assign(() => {}, {
      async *[Symbol.asyncIterator]() {
        yield 'a';
      },
    }),
  both: () => ({
    *[Symbol.iterator]() {
      yield 'sync';
    },
    async *[Symbol.asyncIterator]() {
      yield 'async';
    },
  }),
  notIterable: () => ({ [Symbol.iterator]: 'nothing to call' }),
  opensBadly: () => ({ [Symbol.iterator]: () => raise('cannot be opened') }),
  opensBadlyLater: () => ({ [Symbol.asyncIterator]: () => raise('cannot be opened') }),
  *generated() {
    yield 'a';
    yield ticks(2, () => 'b');
    yield null;
  },
  *generatedThrows(_source, _args, { calls }) {
    try {
      yield ticks(2, () => 'a');
      raise('generator failed');
    } finally {
      calls.push('left');
    }
  },
  *generatedOn(_source, _args, { calls }) {
    yield 'a';
    yield null;
    calls.push('asked for more');
    yield rejected('nobody sees this');
    calls.push('end');
  },
  failsAtFirst: (_source, _args, context) => counted(context, 3, (index) => index === 0),
  failsOnce: (_source, _args, context) => counted(context, 3, (index) => index === 1),
  failsLater: (_source, _args, context) => counted(context, 3, (index) => index > 0),
  counted: (_source, _args, context) => counted(context, 2),
  nullThenRejects: () => [ticks(1, () => 'a'), null, slow('left behind'), rejected('too')],
  rejectsThenNull: () => [slow('left behind'), null],
  stream: (_source, _args, context) => streamed(context, 2),
  streamFails: (_source, _args, context) =>
    streamed(
      context,
      2,
      (index) => index === 1,
      () => ({}),
    ),
  streamFailsAtOnce: (_source, _args, context) => ({
    ...streamed(context, 2, undefined, () => ({})),
    [Symbol.asyncIterator]() {
      return this;
    },
    next: () => raise('next throws'),
  }),
  streamClosesBadly: (_source, _args, context) =>
    streamed(
      context,
      2,
      (index) => index === 1,
      () => raise('cannot be closed'),
    ),
  streamClosesBadlyLater: (_source, _args, context) =>
    streamed(
      context,
      2,
      (index) => index === 1,
      () => rejected('cannot be closed'),
    ),
  streamNeverCloses: (_source, _args, context) =>
    streamed(
      context,
      2,
      (index) => index === 1,
      () => new Promise(() => {}),
    ),
  async *streamNulls() {
    yield 'a';
    yield null;
    yield new Error('in the stream');
    yield 'b';
  },
  async *streamPromises() {
    yield 'a';
    yield ticks(1, () => 'b');
  },
  async *streamThrows(_source, _args, { calls }) {
    try {
      yield 'a';
      raise('stream failed');
    } finally {
      calls.push('left');
    }
  },
};

const fields: Record<string, Resolver> = { ok: () => 'ok' };
for (const [name, resolve] of Object.entries(lists)) {
  for (const kind of ['', 'Items', 'List', 'Both']) fields[`${name}${kind}`] = resolve;
  fields[`${name}Nested`] = (...given) => [['x'], resolve(...given), ['y']];
}
const declared = Object.keys(lists).map(
  (name) =>
    `${name}: [String] ${name}Items: [String!] ${name}List: [String]! ${name}Both: [String!]! ${name}Nested: [[String!]]`,
);
const schema = schemaOf(`type Query { ok: String ${declared.join(' ')} a: Query }`, {
  Query: { fields: { ...fields, a: () => ({}) } },
});

describe('a list', () => {
  for (const name of Object.keys(lists)) {
    test(name, async () => {
      await same(schema, `{ ok ${name} ok2: ok }`);
      for (const kind of ['Items', 'List', 'Both', 'Nested'])
        await same(schema, `{ a { ok ${name}${kind} } }`);
      await same(schema, `{ a { ${name}Both ${name}Items } ${name} a2: a { a { ${name}Both } ok } }`);
    });
  }
});

test('a stream whose end never comes holds up nobody', async () => {
  const { result, calls } = await same(schema, '{ a { streamNeverClosesBoth } }');
  assert.deepEqual(result.data, { a: null });
  assert.ok(calls.includes('closed'));
});

test('what is no list is told with the words of GraphQL.js', async () => {
  const { result } = await same(schema, '{ text callable }');
  assert.deepEqual(
    result.errors?.map(({ message }) => message),
    ['text', 'callable'].map((name) => `Expected Iterable, but did not find one for field "Query.${name}".`),
  );
});

test('a function can be an asynchronous list', async () => {
  const { result } = await same(schema, '{ callableStream }');
  assert.deepEqual(result.data, { callableStream: ['a'] });
});

test('a list without end is left at the limit of a result, and closed', async () => {
  let closed = 0;
  const endless = schemaOf('type Query { all: [Int!] none: [Int!] }', {
    Query: {
      fields: {
        *all() {
          try {
            for (;;) yield 1;
          } finally {
            closed++;
          }
        },
        *none() {
          try {
            for (;;) yield null;
          } finally {
            closed++;
          }
        },
      },
    },
  });
  const limits = { maxResultValues: 100_000 };
  const result = await operationOf(endless, '{ all }', undefined, limits).run({}, undefined);
  assert.match(String(result.errors?.[0]), /more than 100000 values/);
  assert.deepEqual((await operationOf(endless, '{ none }', undefined, limits).run({}, undefined)).data, {
    none: null,
  });
  assert.equal(closed, 2);
});

test('a list of promises that is past the limits leaves none of them unhandled', async () => {
  const many = schemaOf('type Query { all: [String] }', {
    Query: {
      fields: {
        all: () =>
          Array.from({ length: 300 }, (_, index) =>
            index > 200 ? rejected('left behind') : 'x'.repeat(1_000),
          ),
      },
    },
  });
  const operation = operationOf(many, '{ all }', undefined, { maxResultBytes: 50_000 });
  const result = await operation.run({}, undefined);
  assert.match(String(result.errors?.[0]), /more than 50000 bytes/);
  for (let count = 0; count < 3; count++) await turn();
});
