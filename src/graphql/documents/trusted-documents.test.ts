import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildSchema } from 'graphql';
import { createFindOperation } from '../executor.ts';
import { type GraphqlOptions, withDefaults } from '../options.ts';
import { sha256 } from './sha256.ts';

const schema = buildSchema('type Query { hello: String, deep: Query }');
const open = (documents: Record<string, string>, options: Partial<GraphqlOptions> = {}) =>
  createFindOperation(withDefaults({ schema, documents, ...options }));
const none = { query: undefined, operationName: undefined, variables: undefined };
const text = 'query A { hello }';

test('a document is the same by its id, its hash, either with its prefix, and its text', () => {
  const find = open({ A: text, [`sha256:${sha256('{hello}')}`]: '{hello}' });
  const found = find({ ...none, documentId: 'A' });
  assert.ok(!('errors' in found));
  const hash = sha256(text);
  for (const documentId of [hash, `sha256:${hash}`, 'sha256:A']) {
    assert.equal(find({ ...none, documentId }), found, documentId);
  }
  for (const query of [undefined, text]) assert.equal(find({ ...none, query, hash }), found);
  assert.equal(find({ ...none, query: text }), found);
  assert.ok(!('errors' in find({ ...none, documentId: sha256('{hello}') })));
});

test('all that is wrong is named at once, with its place', () => {
  const documents = {
    good: '{ hello }',
    syntax: '{ hello',
    field: '{\n  helo }',
    fragment: 'fragment F on Query { hello }',
    [`sha256:${'0'.repeat(64)}`]: '{ deep { hello } }',
  };
  assert.throws(
    () => open(documents),
    ({ message, code }) => {
      assert.equal(code, 'DOCUMENTS_INVALID');
      const lines = String(message).split('\n').slice(1);
      assert.match(
        lines[0] ?? '',
        /^ {2}- documents: the document "syntax": Syntax Error: .* \(line 1, column 8\)$/,
      );
      assert.match(lines[1] ?? '', /the document "field": Cannot query field "helo".* \(line 2, column 3\)$/);
      assert.match(lines[2] ?? '', /the document "fragment": /);
      assert.match(lines[3] ?? '', /the id "sha256:0+" is not the SHA-256 of its document, [0-9a-f]{64}$/);
      return lines.length === 4;
    },
  );
  const same = { a: '{ hello }', 'sha256:a': '{ deep { hello } }' };
  assert.throws(() => open(same), /two documents have the id "sha256:a"/);
  const many = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`x${i}`, `{ wrong${i} }`]));
  assert.throws(() => open(many), /and 30 more$/);
});

test('only trusted documents, and none of them: the start fails', () => {
  assert.throws(
    () => createFindOperation(withDefaults({ schema, onlyDocuments: true })),
    /onlyDocuments is set and there are none/,
  );
});

test('no flood of others has a trusted document forgotten, and the limits are for those of clients', () => {
  const deep = `${'{ deep '.repeat(20)}{ hello }${' }'.repeat(20)}`;
  const find = open({ deep }, { maxCacheBytes: 60_000 });
  const found = find({ ...none, documentId: 'deep' });
  assert.ok(!('errors' in found));
  for (let i = 0; i < 500; i++) find({ ...none, query: `{ a${i}: hello }` });
  assert.equal(find({ ...none, documentId: 'deep' }), found);
  assert.equal(find({ ...none, query: deep }), found);
  assert.ok('errors' in find({ ...none, query: `${deep} ` }));
});
