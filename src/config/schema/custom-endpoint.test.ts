import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseParameter, readEndpoints } from './custom-endpoint.ts';

function read(value: unknown) {
  const problems: string[] = [];
  const endpoints = readEndpoints({ value, path: 'x: management.endpoints' }, problems);
  return { endpoints, problems };
}

const answer = () => '';

test('an endpoint is read as it is given', () => {
  const given = [
    { id: 'a', read: answer },
    { id: 'b', write: answer, path: 'name' },
    { id: 'c', delete: answer, path: 'name?', query: ['limit', 'since?'] },
    { id: 'd', read: answer, write: answer, delete: answer, query: [], path: undefined },
  ];
  const { endpoints, problems } = read(given);
  assert.deepEqual(problems, []);
  const { path: _path, ...last } = given[3] ?? {};
  assert.deepEqual(endpoints, [...given.slice(0, 3), last]);
});

test('what is wrong is listed by its path, and such an endpoint is none', () => {
  const parameter = 'a name of letters, digits and "_", with "?" behind it when it may be left out';
  const where = 'x: management.endpoints';
  const { endpoints, problems } = read([
    { id: 'a', read: 'text', write: null, delete: {} },
    { id: 'b' },
    { id: 'c', read: answer, path: 'a/b' },
    { id: 'd', read: answer, path: '' },
    { id: 'e', read: answer, path: ['name'] },
    { id: 'f', read: answer, query: 'limit' },
    { id: 'g', read: answer, query: ['limit', 'limit?'] },
    { id: 'h', read: answer, query: new Array(1) },
    { id: 'i', read: answer, query: ['a-b'] },
    { id: 'j', raed: answer },
    { id: 'fine', read: answer },
  ]);
  assert.deepEqual(problems, [
    `${where}[0].read must be a function`,
    `${where}[0].write must be a function`,
    `${where}[0].delete must be a function`,
    `${where}[1] must have at least one of read, write, delete`,
    ...[2, 3, 4].map((i) => `${where}[${i}].path must be ${parameter}`),
    ...[5, 6, 7, 8].map(
      (i) => `${where}[${i}].query must be an array, each item ${parameter}, and no name twice`,
    ),
    `${where}[9] has an unknown key "raed"; did you mean read?`,
    `${where}[9] must have at least one of read, write, delete`,
  ]);
  assert.deepEqual(
    endpoints.map(({ id }) => id),
    ['fine'],
  );
});

test('a parameter is a name with or without a question mark', () => {
  assert.deepEqual(parseParameter('name'), { name: 'name', optional: false });
  assert.deepEqual(parseParameter('a_1?'), { name: 'a_1', optional: true });
  for (const text of [
    '',
    '?',
    'a??',
    '1a',
    '_a',
    '__proto__',
    'a b',
    'a:b',
    ' a',
    'a\n',
    1,
    null,
    undefined,
  ]) {
    assert.equal(parseParameter(text), undefined, String(text));
  }
});
