import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HttpProblem } from '@portico/transport';
import fc from 'fast-check';
import { paramsFromBody, paramsFromUrl, type RequestParams } from './request-params.ts';

test('the parameters of a body', () => {
  const body = {
    query: '{hello}',
    operationName: 'A',
    variables: { a: [1] },
    extensions: { b: 1 },
    more: true,
  };
  assert.deepEqual(paramsFromBody(body), { query: '{hello}', operationName: 'A', variables: { a: [1] } });
});

test('null and absent are the same', () => {
  const none = { query: '', operationName: undefined, variables: undefined };
  assert.deepEqual(paramsFromBody({ query: '' }), none);
  assert.deepEqual(
    paramsFromBody({ query: '', operationName: null, variables: null, extensions: null }),
    none,
  );
  assert.deepEqual(paramsFromUrl({ query: '' }), none);
  assert.deepEqual(paramsFromUrl({ query: '', variables: 'null', extensions: 'null' }), none);
});

test('the parameters of a query string, whose maps are JSON', () => {
  const query = { query: '{hello}', operationName: 'A', variables: '{"a":[1]}', extensions: '{}' };
  assert.deepEqual(paramsFromUrl(query), { query: '{hello}', operationName: 'A', variables: { a: [1] } });
});

const HASH = 'ecf4edb46db40b5132295c0291d62fb65d6759a9eedfa4d5d612dd5ec54a6b38';
const extensions = { persistedQuery: { version: 1, sha256Hash: HASH } };

test('a document is named by its hash, beside its text or without it, and by an id without its text', () => {
  const none = { operationName: undefined, variables: undefined };
  assert.deepEqual(paramsFromBody({ extensions }), { ...none, query: undefined, hash: HASH });
  assert.deepEqual(paramsFromBody({ query: '{a}', extensions }), { ...none, query: '{a}', hash: HASH });
  const url = { extensions: JSON.stringify(extensions) };
  assert.deepEqual(paramsFromUrl(url), { ...none, query: undefined, hash: HASH });
  for (const id of ['documentId', 'doc_id']) {
    const named = { ...none, query: undefined, documentId: 'x' };
    assert.deepEqual(paramsFromBody({ [id]: 'x', query: null, extensions }), named);
    assert.deepEqual(paramsFromUrl({ [id]: 'x' }), named);
    assert.deepEqual(paramsFromBody({ [id]: 'x', query: '{a}' }), { ...none, query: '{a}' });
  }
  assert.deepEqual(paramsFromBody({ query: '', extensions: { persistedQuery: null } }), {
    ...none,
    query: '',
  });
});

test('a name that cannot be read is a 400', () => {
  for (const id of [1, {}, ['x'], true]) {
    malformed(() => paramsFromBody({ documentId: id }), /"documentId" must be a string/);
    malformed(() => paramsFromBody({ doc_id: id }), /"doc_id" must be a string/);
  }
  const wrong = [1, 'x', [], {}, { version: 1 }, { version: 2, sha256Hash: HASH }, { sha256Hash: HASH }];
  for (const persistedQuery of [
    ...wrong,
    { version: 1, sha256Hash: 1 },
    { version: '1', sha256Hash: HASH },
  ]) {
    malformed(() => paramsFromBody({ extensions: { persistedQuery } }), /"persistedQuery" must have/);
    malformed(() => paramsFromBody({ query: '', extensions: { persistedQuery } }), /"persistedQuery"/);
  }
  malformed(() => paramsFromBody({ extensions: {} }), /"query" is missing/);
});

function malformed(read: () => unknown, says: RegExp) {
  assert.throws(
    read,
    (error) => error instanceof HttpProblem && error.status === 400 && says.test(error.message),
  );
}
test('each wrong parameter is a 400 that names it', () => {
  malformed(() => paramsFromBody(undefined), /body is missing/);
  for (const body of [null, 1, 'query', true, [], [{ query: '{hello}' }]]) {
    malformed(() => paramsFromBody(body), /must be a JSON object/);
  }
  for (const query of [undefined, null]) malformed(() => paramsFromBody({ query }), /"query" is missing/);
  for (const query of [1, {}, ['{hello}'], true])
    malformed(() => paramsFromBody({ query }), /"query" must be/);
  for (const operationName of [1, {}, [], false]) {
    malformed(() => paramsFromBody({ query: '', operationName }), /"operationName" must be/);
  }
  for (const map of [1, 'x', '{}', [], false, '']) {
    malformed(() => paramsFromBody({ query: '', variables: map }), /"variables" must be a map/);
    malformed(() => paramsFromBody({ query: '', extensions: map }), /"extensions" must be a map/);
  }
});

test('in a query string a doubled parameter and a map that is no JSON are 400s', () => {
  malformed(() => paramsFromUrl({}), /"query" is missing/);
  malformed(() => paramsFromUrl({ query: ['{hello}', '{hello}'] }), /"query" must be/);
  malformed(() => paramsFromUrl({ query: '', operationName: ['A', 'B'] }), /"operationName" must be/);
  for (const text of ['{', '[1]', '1', '"x"', 'undefined', '{"__proto__":1}', '['.repeat(100)]) {
    malformed(() => paramsFromUrl({ query: '', variables: text }), /JSON|"variables"/);
    malformed(() => paramsFromUrl({ query: '', extensions: text }), /JSON|"extensions"/);
  }
  malformed(() => paramsFromUrl({ query: '', variables: ['{}', '{}'] }), /"variables" must be a map/);
});

/** Reads and gives undefined for a 400; any other error fails the property. */
function orRefused(read: () => RequestParams): RequestParams | undefined {
  try {
    return read();
  } catch (error) {
    assert.ok(error instanceof HttpProblem && error.status === 400, String(error));
    return undefined;
  }
}

test('garbage gives a 400 or sound parameters, and nothing else', () => {
  const shaped = fc.record(
    {
      query: fc.oneof(fc.string(), fc.anything()),
      operationName: fc.oneof(fc.string(), fc.anything()),
      variables: fc.oneof(fc.object(), fc.anything()),
      extensions: fc.oneof(fc.record({ persistedQuery: fc.anything() }), fc.object(), fc.anything()),
      documentId: fc.anything(),
      doc_id: fc.anything(),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.oneof(shaped, fc.anything()), (body) => {
      const params = orRefused(() => paramsFromBody(body));
      if (params === undefined) return;
      const { query, operationName: _name, variables: _variables, ...names } = params;
      assert.equal(typeof (query ?? names.documentId ?? names.hash), 'string');
      for (const name of Object.values(names)) assert.equal(typeof name, 'string');
      assert.ok(params.operationName === undefined || typeof params.operationName === 'string');
      assert.ok(params.variables === undefined || typeof params.variables === 'object');
    }),
    { numRuns: 500 },
  );
  const text = fc.oneof(fc.string(), fc.array(fc.string()), fc.json());
  const url = fc.record(
    { query: text, operationName: text, variables: text, extensions: text },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(url, (query) => {
      orRefused(() => paramsFromUrl(query));
    }),
    { numRuns: 500 },
  );
});

test('variables come through a URL as they come through a body', () => {
  const variables = fc.dictionary(
    fc.string().filter((name) => name !== '__proto__'),
    fc.jsonValue().filter((value) => !JSON.stringify(value).includes('__proto__')),
  );
  fc.assert(
    fc.property(variables, (map) => {
      const json = JSON.stringify(map);
      const direct = paramsFromBody({ query: 'q', variables: JSON.parse(json) as unknown });
      assert.deepEqual(paramsFromUrl({ query: 'q', variables: json }), direct);
    }),
  );
});
