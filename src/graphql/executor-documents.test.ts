import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFindOperation } from '@portico/graphql-plans';
import { buildSchema } from 'graphql';
import { heapInUse } from '../../test/support/collect-garbage.ts';
import { defaultsOf } from '../config/options/options.ts';
import { Metrics } from '../telemetry/metrics.ts';
import { type GraphqlOptions, operationMeters, withDefaults } from './graphql.ts';

const LIMITS = defaultsOf('graphql');

const schema = buildSchema(
  'type Query { hello: String, deep: Query, field: String, echo(text: String): String }',
);

/** A look-up of operations, and how often each of its results was counted. */
function documents(options: Partial<GraphqlOptions> = {}) {
  const metrics = new Metrics();
  const findOperation = createFindOperation({
    ...withDefaults({ schema, ...options }),
    meters: operationMeters(metrics),
  });
  const find = (query: string) => findOperation({ query, operationName: undefined, variables: undefined });
  const isGood = (query: string) => !('errors' in find(query));
  const messages = (query: string) => {
    const result = find(query);
    return 'errors' in result ? result.errors.map(({ message }) => message) : [];
  };
  const lookups = () => {
    const series = [...(metrics.meter('graphql.documents')?.series() ?? [])];
    return Object.fromEntries(series.map((one) => [one.tags[0]?.value, one.measure()[0]?.value]));
  };
  return { find, lookups, isGood, messages, [Symbol.dispose]: () => metrics[Symbol.dispose]() };
}

test('a document is read once and remembered, a wrong one too', () => {
  using found = documents();
  assert.equal(found.find('{hello}'), found.find('{hello}'));
  assert.equal(found.find('{nothing}'), found.find('{nothing}'));
  assert.equal(found.find('{'), found.find('{'));
  assert.deepEqual(found.lookups(), { miss: 1, hit: 1, refused: 4 });
});

test('another text is another document, however alike', () => {
  using found = documents();
  assert.notEqual(found.find('{hello}'), found.find('{ hello}'));
  assert.notEqual(found.find('{hello}'), found.find('{hello}\n'));
});

test('names that objects have by nature are no documents', () => {
  using found = documents();
  for (const query of ['constructor', '__proto__', 'toString', ''])
    assert.equal(found.isGood(query), false, query);
});

const numbered = (i: number) => `{a${i}:hello}`;

test('a flood of wrong documents pushes no good one out', () => {
  using found = documents({ maxCacheBytes: 60_000 });
  const good = found.find('{hello}');
  for (let i = 0; i < 500; i++) found.find(`{wrong${i}}`);
  for (let i = 0; i < 500; i++) found.find(`{ syntax ${i}`);
  assert.equal(found.find('{hello}'), good);
});

test('a document in use outlives any flood of others, and one that is not is forgotten', () => {
  using found = documents({ maxCacheBytes: 60_000 });
  const used = found.find('{hello}');
  const unused = found.find('{field}');
  for (let i = 0; i < 500; i++) {
    found.find(numbered(i));
    assert.equal(found.find('{hello}'), used, `after ${i} others`);
  }
  assert.notEqual(found.find('{field}'), unused);
});

test('remembered documents, with their plans, take no more bytes than was asked for, good or wrong', () => {
  const conditions = Array.from({ length: 6 }, (_, i) => `$c${i}: Boolean = false`).join();
  const skipping = Array.from({ length: 6 }, (_, i) => `s${i}: hello @skip(if: $c${i})`).join(' ');
  const planned = (i: number) =>
    `query(${conditions}) { a${i}: hello ${skipping} ${'deep { hello } '.repeat(50)} }`;
  for (const write of [numbered, (i: number) => `{wrong${i}}`, (i: number) => `{a${i}(`, planned]) {
    using found = documents({ maxCacheBytes: 4 * 1024 * 1024 });
    const before = heapInUse();
    for (let i = 0; i < 2_000; i++) {
      const operation = found.find(write(i));
      if (write !== planned || 'errors' in operation) continue;
      for (let bits = 0; bits < 8; bits++) {
        operation.run({ c0: (bits & 1) > 0, c1: (bits & 2) > 0, c2: (bits & 4) > 0 }, {});
      }
    }
    const grown = heapInUse() - before;
    assert.ok(grown < 5 * 1024 * 1024, `${grown} bytes of ${write(0)}`);
  }
});

test('no value of a past request is kept', () => {
  using found = documents();
  const operation = found.find('query ($text: String) { echo(text: $text) }');
  assert.ok(!('errors' in operation));
  const run = () => void operation.run({ text: 'x'.repeat(10_000_000).toUpperCase() }, {});
  const before = heapInUse();
  run();
  const grown = heapInUse() - before;
  assert.ok(grown < 5_000_000, `${grown} bytes`);
});

test('with no room nothing is remembered and all works', () => {
  using found = documents({ maxCacheBytes: 0 });
  assert.ok(found.isGood('{hello}'));
  assert.notEqual(found.find('{hello}'), found.find('{hello}'));
});

test('a document beyond a limit is refused in words, however it is nested', () => {
  using found = documents();
  const limit = LIMITS.maxTokens;
  const floods = [
    '{a'.repeat(30_000),
    `{deep${'{deep'.repeat(30_000)}`,
    `{hello(a:${'['.repeat(30_000)}`,
    `{hello(a:${'{a:'.repeat(30_000)}`,
    `query($a:${'['.repeat(30_000)}`,
    `{${'hello '.repeat(30_000)}}`,
    `{...on Query${'{...on Query'.repeat(30_000)}`,
  ];
  for (const query of floods)
    assert.match(found.messages(query).join(), new RegExp(`more than ${limit} tokens`));
  assert.deepEqual(found.messages(`${'{deep'.repeat(11)}{hello}${'}'.repeat(11)}`).length, 1);
  assert.match(
    found.messages(`{${Array.from({ length: 31 }, (_, i) => `a${i}:hello`).join(' ')}}`).join(),
    /31 aliases/,
  );
});

test('the limits are looked at before the schema is', () => {
  using found = documents({ limits: { ...LIMITS, maxDepth: 1 } });
  assert.deepEqual(found.messages('{nothing{at{all}}}'), [
    'The document is 3 fields deep; at most 1 are allowed (maxDepth)',
  ]);
});

test('introspection and suggestions can be switched off', () => {
  using open = documents();
  assert.ok(open.isGood('{__schema{queryType{name}}}'));
  assert.match(open.messages('{helo}').join(), /Did you mean "hello"/);
  using closed = documents({ introspection: false, suggestions: false });
  assert.equal(closed.isGood('{__schema{queryType{name}}}'), false);
  assert.ok(closed.isGood('{__typename hello}'));
  assert.doesNotMatch(closed.messages('{helo}').join(), /Did you mean/);
});
