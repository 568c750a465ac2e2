import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildSchema, type DocumentNode } from 'graphql';
import { DEFAULT_LIMITS } from './document-limits.ts';
import { type DocumentOptions, Documents } from './documents.ts';

const schema = buildSchema('type Query { hello: String, deep: Query, field: String }');

/** Documents that remember what they are made of, and the look-ups that were reported. */
function documents(options: Partial<DocumentOptions> = {}) {
  const lookups: string[] = [];
  const found = new Documents<{ readonly document: DocumentNode }>(
    {
      schema,
      limits: DEFAULT_LIMITS,
      maxCached: 100,
      introspection: true,
      suggestions: true,
      onLookup: (result) => lookups.push(result),
      ...options,
    },
    (document) => ({ document }),
  );
  const isGood = (query: string) => 'document' in found.find(query);
  const messages = (query: string) => {
    const result = found.find(query);
    return 'errors' in result ? result.errors.map(({ message }) => message) : [];
  };
  return { found, lookups, isGood, messages };
}

test('a document is read once and remembered, a wrong one too', () => {
  const { found, lookups } = documents();
  assert.equal(found.find('{hello}'), found.find('{hello}'));
  assert.equal(found.find('{nothing}'), found.find('{nothing}'));
  assert.equal(found.find('{'), found.find('{'));
  assert.deepEqual(lookups, ['miss', 'hit', 'refused', 'refused', 'refused', 'refused']);
});

test('another text is another document, however alike', () => {
  const { found } = documents();
  assert.notEqual(found.find('{hello}'), found.find('{ hello}'));
  assert.notEqual(found.find('{hello}'), found.find('{hello}\n'));
});

test('names that objects have by nature are no documents', () => {
  const { isGood } = documents();
  for (const query of ['constructor', '__proto__', 'toString', '']) assert.equal(isGood(query), false, query);
});

const numbered = (i: number) => `{a${i}:hello}`;

test('a flood of wrong documents pushes no good one out', () => {
  const { found } = documents({ maxCached: 10 });
  const good = found.find('{hello}');
  for (let i = 0; i < 500; i++) found.find(`{wrong${i}}`);
  for (let i = 0; i < 500; i++) found.find(`{ syntax ${i}`);
  assert.equal(found.find('{hello}'), good);
});

test('a document in use outlives any flood of others, and one that is not is forgotten', () => {
  const { found } = documents({ maxCached: 10 });
  const used = found.find('{hello}');
  const unused = found.find('{field}');
  for (let i = 0; i < 500; i++) {
    found.find(numbered(i));
    assert.equal(found.find('{hello}'), used, `after ${i} others`);
  }
  assert.notEqual(found.find('{field}'), unused);
});

test('no more documents are remembered than was asked for, good or wrong', () => {
  const count = 50;
  for (const write of [numbered, (i: number) => `{wrong${i}}`]) {
    const { found } = documents({ maxCached: count });
    // Wrong ones have a bound of their own.
    const queries = Array.from({ length: 1_000 }, (_, i) => write(i));
    const first = queries.map((query) => found.find(query));
    // Looked up from the newest, so that no look-up drives out what is asked for next.
    const remembered = queries.toReversed().filter((query, i) => found.find(query) === first.at(-1 - i));
    assert.ok(remembered.length >= count / 2, 'it does remember');
    assert.ok(remembered.length <= (write === numbered ? count : 200), `${remembered.length} remembered`);
  }
});

test('with no room nothing is remembered and all works', () => {
  const { found, isGood } = documents({ maxCached: 0 });
  assert.ok(isGood('{hello}'));
  assert.notEqual(found.find('{hello}'), found.find('{hello}'));
});

test('a document beyond a limit is refused in words, however it is nested', () => {
  const { messages } = documents();
  const limit = DEFAULT_LIMITS.maxTokens;
  const floods = [
    '{a'.repeat(30_000),
    `{deep${'{deep'.repeat(30_000)}`,
    `{hello(a:${'['.repeat(30_000)}`,
    `{hello(a:${'{a:'.repeat(30_000)}`,
    `query($a:${'['.repeat(30_000)}`,
    `{${'hello '.repeat(30_000)}}`,
    `{...on Query${'{...on Query'.repeat(30_000)}`,
  ];
  for (const query of floods) assert.match(messages(query).join(), new RegExp(`more than ${limit} tokens`));
  assert.deepEqual(messages(`${'{deep'.repeat(11)}{hello}${'}'.repeat(11)}`).length, 1);
  assert.match(
    messages(`{${Array.from({ length: 31 }, (_, i) => `a${i}:hello`).join(' ')}}`).join(),
    /31 aliases/,
  );
});

test('the limits are looked at before the schema is', () => {
  const { messages } = documents({ limits: { ...DEFAULT_LIMITS, maxDepth: 1 } });
  assert.deepEqual(messages('{nothing{at{all}}}'), [
    'The document is 3 fields deep; at most 1 are allowed (maxDepth)',
  ]);
});

test('introspection and suggestions can be switched off', () => {
  const open = documents();
  assert.ok(open.isGood('{__schema{queryType{name}}}'));
  assert.match(open.messages('{helo}').join(), /Did you mean "hello"/);
  const closed = documents({ introspection: false, suggestions: false });
  assert.equal(closed.isGood('{__schema{queryType{name}}}'), false);
  assert.ok(closed.isGood('{__typename hello}'));
  assert.doesNotMatch(closed.messages('{helo}').join(), /Did you mean/);
});
