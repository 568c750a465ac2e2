import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createFindOperation, type DocumentLimits } from '@portico/graphql-plans';
import { buildSchema, getIntrospectionQuery } from 'graphql';
import { withDefaults } from '../../src/graphql/graphql.ts';

const repeat = (count: number, part: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => part(index)).join(' ');

/** A schema that is as deep as one likes. */
const schema = buildSchema(`
  type Query { leaf: String other: String deep: Query list: [Query] }
  type Mutation { leaf: String }
`);

/** The limits that a document passes over under the default limits, and the first message. */
function judge(query: string, limits: Partial<DocumentLimits> = {}) {
  const find = createFindOperation(withDefaults({ schema, limits, maxCacheBytes: 0 }));
  const found = find({ query, operationName: undefined, variables: undefined });
  // Which of several operations runs is no matter of the limits.
  const errors = ('errors' in found ? found.errors : []).filter(
    ({ message }) => message !== 'The operation to run cannot be determined',
  );
  return {
    valid: errors.length === 0,
    limits: errors.map(({ extensions }) => extensions.limit),
    message: errors[0]?.message,
  };
}

const passes = { valid: true, limits: [], message: undefined };

/** Wraps fields so that they come to stand in the operation in another way. */
const disguises: Readonly<Record<string, (fields: string) => string>> = {
  plainly: (fields) => `{ ${fields} }`,
  'in inline fragments': (fields) => `{ ... { ... on Query { ${fields} } } }`,
  'in a fragment': (fields) => `{ ...A } fragment A on Query { ${fields} }`,
  'in a fragment within fragments': (fields) =>
    `{ ...A } fragment A on Query { ...B } fragment B on Query { ...C } fragment C on Query { ${fields} }`,
  'in a fragment named __schema': (fields) => `{ ...__schema } fragment __schema on Query { ${fields} }`,
  'in the last of many operations': (fields) =>
    `${repeat(10, (i) => `query Q${i} { leaf }`)} query Last { ${fields} }`,
  'in a mutation beside it': (fields) => `query Q { ${fields} } mutation M { leaf }`,
};

const nested = (depth: number) => `${'deep { '.repeat(depth - 1)}leaf${' }'.repeat(depth - 1)}`;

describe('limits of a document', () => {
  for (const [how, disguise] of Object.entries(disguises)) {
    test(`what is at a limit passes, what is past it is refused: ${how}`, () => {
      assert.deepEqual(judge(disguise(nested(10))), passes);
      assert.deepEqual(judge(disguise(nested(11))).limits, ['maxDepth']);
      const aliases = (count: number) => `deep { ${repeat(count, (i) => `a${i}: leaf`)} }`;
      assert.deepEqual(judge(disguise(aliases(30))), passes);
      assert.deepEqual(judge(disguise(aliases(31))).limits, ['maxAliases']);
      const typenames = (count: number) => `deep { ${repeat(count, (i) => `a${i}: __typename`)} }`;
      assert.deepEqual(judge(disguise(typenames(30))), passes);
      assert.deepEqual(judge(disguise(typenames(31))).limits, ['maxAliases']);
      const directives = (count: number) => `deep { ${'leaf @include(if: true) '.repeat(count)} }`;
      assert.deepEqual(judge(disguise(directives(50))), passes);
      assert.deepEqual(judge(disguise(directives(51))).limits, ['maxDirectives']);
      assert.deepEqual(judge(disguise('leaf '.repeat(30))), passes);
      assert.deepEqual(judge(disguise('leaf '.repeat(31))).limits, ['maxRootFields']);
    });
  }

  test('tokens: 1,000 pass, one more is refused', () => {
    const operations = `${repeat(199, (i) => `query Q${i} { leaf }`)} query Last { leaf`;
    assert.deepEqual(judge(`${operations} }`), passes);
    assert.deepEqual(judge(`${operations} } # comments and    white space do not count`), passes);
    assert.match(judge(`${operations} leaf }`).message ?? '', /more than 1000 tokens/);
  });

  test('each refusal says how much there is, how much is allowed, and by which limit', () => {
    const messages: Readonly<Record<string, string>> = {
      [`{ ${nested(11)} }`]: 'The document is 11 fields deep; at most 10 are allowed (maxDepth)',
      [`{ deep { ${repeat(31, (i) => `a${i}: leaf`)} } }`]:
        'The document has 31 aliases; at most 30 are allowed (maxAliases)',
      [`{ ${'leaf '.repeat(31)} }`]:
        'The document has 31 root fields; at most 30 are allowed (maxRootFields)',
      [`{ deep { ${'leaf @skip(if: false) '.repeat(51)} } }`]:
        'The document has 51 directives; at most 50 are allowed (maxDirectives)',
    };
    for (const [query, message] of Object.entries(messages)) assert.equal(judge(query).message, message);
  });

  test('a fragment counts each time it is spread', () => {
    const of = (spreads: number, fields: string) =>
      `{ deep { ${'...A '.repeat(spreads)} } } fragment A on Query { ${fields} }`;
    assert.deepEqual(
      judge(
        of(
          3,
          repeat(10, (i) => `a${i}: leaf`),
        ),
      ),
      passes,
    );
    assert.deepEqual(
      judge(
        of(
          4,
          repeat(10, (i) => `a${i}: leaf`),
        ),
      ).limits,
      ['maxAliases'],
    );
    assert.deepEqual(judge(of(6, 'leaf @skip(if: false) '.repeat(10))).limits, ['maxDirectives']);
    assert.deepEqual(
      judge('{ ...A ...A ...A ...A } fragment A on Query { leaf leaf leaf leaf leaf leaf leaf leaf }').limits,
      ['maxRootFields'],
    );
  });

  test('directives of fragments, operations and spreads count', () => {
    const skip = '@include(if: true) ';
    const spreads = `...A ${skip}`.repeat(50);
    assert.deepEqual(judge(`{ deep { ${spreads} } } fragment A on Query { leaf }`), passes);
    assert.deepEqual(judge(`{ deep { ${spreads} } } fragment A on Query { leaf ${skip} }`).limits, [
      'maxDirectives',
    ]);
    assert.deepEqual(judge(`query Q ${skip.repeat(51)} { leaf }`).limits, ['maxDirectives']);
    assert.deepEqual(judge(`{ ...A } fragment A on Query ${skip.repeat(51)} { leaf }`).limits, [
      'maxDirectives',
    ]);
  });

  test('fragments that double at each step', () => {
    const doubling = (steps: number, fields: string) =>
      `{ deep { ...F0 } } ${repeat(steps, (i) => `fragment F${i} on Query { ...F${i + 1} ...F${i + 1} }`)}
      fragment F${steps} on Query { ${fields} }`;
    assert.deepEqual(judge(doubling(70, 'leaf')).limits, ['maxFields']);
    assert.deepEqual(judge(doubling(9, 'leaf')), passes);
    assert.deepEqual(judge(doubling(10, 'leaf')).limits, ['maxFields']);
    assert.deepEqual(judge(doubling(70, 'a: leaf')).limits, ['maxAliases', 'maxFields']);
    assert.deepEqual(judge(doubling(4, 'a: leaf')), passes);
    assert.deepEqual(judge(doubling(5, 'a: leaf')).limits, ['maxAliases']);
    assert.deepEqual(judge(doubling(6, 'leaf @skip(if: false)')).limits, ['maxDirectives']);
    const atRoot = `{ ...F0 } ${repeat(70, (i) => `fragment F${i} on Query { ...F${i + 1} ...F${i + 1} }`)}`;
    assert.deepEqual(judge(`${atRoot} fragment F70 on Query { leaf }`).limits, [
      'maxRootFields',
      'maxFields',
    ]);
    const deeper = repeat(
      12,
      (i) => `fragment F${i} on Query { deep { ...F${i + 1} } list { ...F${i + 1} } }`,
    );
    assert.deepEqual(judge(`{ ...F0 } ${deeper} fragment F12 on Query { leaf }`).limits, [
      'maxDepth',
      'maxFields',
    ]);
  });

  test('fragments that go round in a circle are refused', () => {
    for (const query of [
      '{ ...A } fragment A on Query { ...A }',
      '{ deep { ...A } } fragment A on Query { deep { ...B } } fragment B on Query { deep { ...A } }',
      `{ ...F0 } ${repeat(60, (i) => `fragment F${i} on Query { ...F${(i + 1) % 60} leaf ...F${(i + 7) % 60} }`)}`,
    ]) {
      const { valid, message } = judge(query);
      assert.equal(valid, false);
      assert.match(message ?? '', /within itself|root fields/);
    }
  });

  test('only introspection may go deeper, not what is named like it', () => {
    assert.deepEqual(
      judge(
        '{ __schema { types { ofType { ofType { ofType { ofType { ofType { ofType { ofType { ofType { name } } } } } } } } } } }',
      ),
      passes,
    );
    assert.deepEqual(judge(`{ __schema: ${nested(11)} }`).limits, ['maxDepth']);
    assert.deepEqual(judge(`{ __schema { types { ${repeat(31, (i) => `a${i}: name`)} } } }`).limits, [
      'maxAliases',
    ]);
    const lists =
      '{ __schema { types { fields { type { fields { type { fields { type { fields { name } } } } } } } } } }';
    assert.match(judge(lists).message ?? '', /Maximum introspection depth exceeded/);
  });

  test('the introspection of tools passes', () => {
    assert.deepEqual(judge(getIntrospectionQuery()), passes);
    for (const on of [true, false]) {
      const options = {
        descriptions: on,
        specifiedByUrl: on,
        directiveIsRepeatable: on,
        schemaDescription: on,
        inputValueDeprecation: on,
        experimentalDirectiveDeprecation: on,
        oneOf: on,
      };
      assert.deepEqual(judge(getIntrospectionQuery({ ...options, typeDepth: on ? 9 : 3 })), passes);
    }
  });
});
