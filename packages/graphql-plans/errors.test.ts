import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { buildSchema, type ExecutionResult, GraphQLError, graphqlSync } from 'graphql';
import { OutcomeUnknownError, StoreUnavailableError } from '../../src/core/errors.ts';
import { maskErrors } from './results.ts';

const schema = buildSchema('type Query { field: String, list: [Item!] } type Item { field: String! }');

/** A real result of a field that throws, masked, with what was hidden. */
function masked(thrown: unknown): { readonly result: ExecutionResult; readonly hidden: readonly Error[] } {
  const field = () => {
    throw thrown;
  };
  const hidden: Error[] = [];
  const result = graphqlSync({ schema, source: '{\n  field\n}', rootValue: { field } });
  return { result: maskErrors(result, (error) => hidden.push(error)), hidden };
}

test('what a GraphQLError of another copy of GraphQL.js says stays too', () => {
  const other = createRequire(import.meta.url)(
    fileURLToPath(new URL('index.js', import.meta.resolve('graphql'))),
  ) as typeof import('graphql');
  const error = new other.GraphQLError('for the client', { extensions: { code: 'OURS' } });
  assert.ok(!(error instanceof GraphQLError));
  const { result, hidden } = masked(error);
  assert.deepEqual(hidden, []);
  assert.equal(result.errors?.[0]?.message, 'for the client');
  assert.equal(result.errors?.[0]?.extensions.code, 'OURS');
});

test('a result without errors is passed on as it is', () => {
  const result = { data: { a: 1 } };
  assert.equal(
    maskErrors(result, () => assert.fail('nothing to hide')),
    result,
  );
});

test('what the program threw is hidden and told to the log, its place in the result stays', () => {
  const error = new Error('secret-31');
  const { result, hidden } = masked(error);
  assert.deepEqual(hidden, [error]);
  assert.deepEqual(JSON.parse(JSON.stringify(result)), {
    data: { field: null },
    errors: [
      {
        message: 'Internal server error',
        locations: [{ line: 2, column: 3 }],
        path: ['field'],
        extensions: { code: 'INTERNAL_SERVER_ERROR' },
      },
    ],
  });
});

test('clients are told that the database did not answer, and whether a write may be stored', () => {
  for (const error of [new StoreUnavailableError('secret-33'), new OutcomeUnknownError('secret-34')]) {
    const { result, hidden } = masked(error);
    assert.deepEqual(hidden, [error]);
    assert.equal(result.errors?.[0]?.message, 'Service Unavailable');
    assert.deepEqual(result.errors?.[0]?.extensions, { code: error.code });
  }
});

test('nothing of a thrown error gets out, whatever it is and carries', () => {
  const SECRET = 'secret-32';
  const thrown = fc.oneof(
    fc.record({
      message: fc.constant(SECRET),
      extensions: fc.constant({ SECRET }),
      code: fc.constant(SECRET),
    }),
    fc.constant(SECRET),
    fc.anything().map((cause) => Object.assign(new Error(SECRET, { cause }), { extensions: { SECRET } })),
    fc.constantFrom(undefined, null, 0, Symbol(SECRET), { toString: () => SECRET }),
  );
  fc.assert(
    fc.property(thrown, (error) => {
      const { result, hidden } = masked(error);
      const text = JSON.stringify(result);
      assert.ok(!text.includes(SECRET), text);
      assert.equal(hidden.length, 1);
      assert.deepEqual(result.errors?.[0]?.message, 'Internal server error');
    }),
  );
});

test('what a resolver says on purpose stays, but not what caused it', () => {
  const originalError = new Error('secret-33');
  const { result, hidden } = masked(
    new GraphQLError('The name is taken', { originalError, extensions: { code: 'TAKEN' } }),
  );
  assert.deepEqual(hidden, []);
  assert.equal(result.errors?.[0]?.message, 'The name is taken');
  assert.deepEqual(result.errors?.[0]?.extensions, { code: 'TAKEN' });
  assert.deepEqual(result.errors?.[0]?.path, ['field']);
  assert.ok(!JSON.stringify(result).includes('secret-33'));
});

test('what GraphQL itself says stays', () => {
  const refusals = ['{', '{nothing}', 'query($a: Int!) {field}'];
  for (const source of refusals) {
    const result = graphqlSync({ schema, source });
    assert.deepEqual(maskErrors(result, () => assert.fail('nothing to hide')).errors, result.errors);
  }
});

test('each error is judged by itself, and the data are left alone', () => {
  const list = [
    { field: 'fine' },
    { field: () => 'fine too' },
    {
      field: () => {
        throw new GraphQLError('on purpose');
      },
    },
  ];
  const hidden: Error[] = [];
  const field = () => {
    throw new Error('secret-34');
  };
  const result = graphqlSync({ schema, source: '{field list{field}}', rootValue: { field, list } });
  const { data, errors } = maskErrors(result, (error) => hidden.push(error));
  assert.equal(data, result.data);
  assert.deepEqual(
    errors?.map(({ message }) => message),
    ['Internal server error', 'on purpose'],
  );
  assert.equal(hidden.length, 1);
});
