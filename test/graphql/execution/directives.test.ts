import assert from 'node:assert/strict';
import { test } from 'node:test';
import { operationOf, type Resolver, raise, same, schemaOf } from './compare.ts';

const fields: Record<string, Resolver> = {
  a: () => 'a',
  b: () => 'b',
  fails: () => raise('failed'),
  own: () => ({}),
  list: () => [{}, {}],
  items: () => ['x', 'y'],
};
const type = 'a: String b: String fails: String own: Query list: [Query] items: [String]';
const plain = `interface Node { a: String } type Query implements Node { ${type} } type Other implements Node { a: String }`;
const schema = schemaOf(plain, { Query: { fields } });

test('@skip and @include on fields and fragments, by literals and variables', async () => {
  const conditions = [
    '@skip(if: true)',
    '@skip(if: false)',
    '@include(if: true)',
    '@include(if: false)',
    '@skip(if: $v)',
    '@include(if: $v)',
    '@skip(if: $v) @include(if: $w)',
    '',
  ];
  for (const condition of conditions) {
    for (const variables of [
      { v: true, w: true },
      { v: false, w: true },
      { v: false, w: false },
    ]) {
      const query = `query ($v: Boolean!, $w: Boolean!) { a ${condition} u: a @skip(if: $v) @skip(if: $w)
        own { ...F ${condition} ... on Query ${condition} { b } ... ${condition} { x: b } ... on Node ${condition} { y: a } }
        b ${condition} list { b ${condition} fails ${condition} } }
        fragment F on Query { a own { b ${condition} } ... on Other { a } }`;
      await same(schema, query.replace('@skip(if: $v) @skip(if: $w)', '@skip(if: $v) @include(if: $w)'), {
        variables,
      });
    }
  }
});

test('a condition that is wrong fails where its selection stands', async () => {
  const query = 'query ($v: Boolean = true) { a own { a b @include(if: $v) } list { a @skip(if: $v) } }';
  for (const variables of [{ v: null }, {}, { v: true }, { v: null }])
    await same(schema, query, { variables });
  const { result } = await same(schema, query, { variables: { v: null } });
  assert.equal(result.errors?.length, 3);
  await same(schema, 'query ($v: Boolean = true) { a b @include(if: $v) }', { variables: { v: null } });
});

const defer = 'directive @defer(if: Boolean! = true, label: String) on FRAGMENT_SPREAD | INLINE_FRAGMENT';
const stream = 'directive @stream(if: Boolean! = true, label: String, initialCount: Int! = 0) on FIELD';
const incremental = schemaOf(
  `${defer} ${stream} type Query { ${type} } type Mutation { ${type} } type Subscription { a: String list: [Query] }`,
  {
    Query: { fields },
    Mutation: { fields },
    Subscription: { subscribe: { a: () => raise('opened'), list: () => raise('opened') } },
  },
);

test('@defer and @stream are refused with their reason, before anything runs', async () => {
  const refused = [
    '{ own { ... @defer { a } } }',
    '{ own { ...F @defer(label: "x") } } fragment F on Query { a }',
    '{ items @stream }',
    '{ own { list { ...F } } } fragment F on Query { own { items @stream(initialCount: 1, if: true) } }',
    'query ($v: Boolean = true) { own { ... @defer(if: $v) { a } } }',
    'query ($v: Boolean!) { items @stream(if: $v) }',
    'mutation { own { ... @defer { a } } }',
    'subscription { list { ... @defer { a } } }',
    'subscription { list { items @stream } }',
  ];
  for (const query of refused) {
    const operation = operationOf(incremental, query);
    const calls: string[] = [];
    const result = query.startsWith('subscription')
      ? await operation.subscribe({ v: true }, { calls })
      : operation.run({ v: true }, { calls });
    assert.ok('errors' in result && !('data' in result), query);
    const [error, more] = result.errors ?? [];
    assert.equal(more, undefined);
    assert.equal(error?.extensions.code, 'INCREMENTAL_DELIVERY');
    assert.match(String(error?.message), /^@(?:defer|stream) asks for incremental delivery/);
    assert.ok(error?.locations?.length === 1);
  }
});

test('@defer and @stream that are turned off are as if they were not there', async () => {
  const off = [
    '{ own { ... @defer(if: false) { a } b } items @stream(if: false) }',
    'query ($v: Boolean!) { own { ...F @defer(if: $v) } items @stream(if: $v) } fragment F on Query { a b }',
  ];
  for (const query of off) {
    const result = await operationOf(incremental, query).run({ v: false }, { calls: [] });
    const without = query
      .replaceAll(/@(?:defer|stream)\(if: (?:false|\$v)\)/g, '')
      .replace('($v: Boolean!)', '');
    assert.equal(JSON.stringify(result), (await same(schema, without)).text);
  }
  // GraphQL.js refuses each operation on such a schema; those that do not use the directives run on ours.
  const result = await operationOf(incremental, '{ a }').run({}, undefined);
  assert.equal(JSON.stringify(result), '{"data":{"a":"a"}}');
});
