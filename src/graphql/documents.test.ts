import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createFindOperation } from '@portico/graphql-plans';
import { buildSchema } from 'graphql';
import { DocumentsError, readDocuments, sha256 } from '../../packages/graphql-plans/documents.ts';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { type GraphqlOptions, withDefaults } from './graphql.ts';

describe('read documents', () => {
  /** The ids and texts of a file with this content. */
  async function fromFile(content: unknown) {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'documents.json');
    await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content));
    return pairs(readDocuments(file));
  }

  const pairs = (documents: ReturnType<typeof readDocuments>) => documents.map(({ id, text }) => [id, text]);

  test('a map of texts by id: the plain one and the persisted queries of Relay', async () => {
    const map = { '0f0a': 'query A { a }', B: 'query B { b }' };
    assert.deepEqual(await fromFile(map), Object.entries(map));
    assert.deepEqual(await fromFile(`\uFEFF${JSON.stringify(map)}`), Object.entries(map));
    assert.deepEqual(pairs(readDocuments(map)), Object.entries(map));
  });

  test("Apollo's manifest", async () => {
    const manifest = {
      format: 'apollo-persisted-query-manifest',
      version: 1,
      operations: [
        { id: 'x1', name: 'A', type: 'query', body: 'query A { a }' },
        { id: 'x2', body: 'query B { b }' },
      ],
    };
    assert.deepEqual(await fromFile(manifest), [
      ['x1', 'query A { a }'],
      ['x2', 'query B { b }'],
    ]);
  });

  test('a folder: each .graphql file is a document that its name is the id of', async () => {
    await using folder = await temporaryFolder();
    const write = (name: string, text: string) => writeFile(join(folder.path, name), text);
    await Promise.all([
      write('B.graphql', 'query B { b }\n'),
      write('A.user.graphql', '# é\n{a}'),
      write('x.md', ''),
    ]);
    assert.deepEqual(pairs(readDocuments(folder.path)), [
      ['A.user', '# é\n{a}'],
      ['B', 'query B { b }\n'],
    ]);
  });

  test('what cannot be read is named', async () => {
    await using folder = await temporaryFolder();
    const empty = join(folder.path, 'empty');
    await mkdir(empty);
    const missing = join(folder.path, 'missing.json');
    const fails = (read: () => unknown, says: RegExp) =>
      assert.throws(read, (error) => error instanceof DocumentsError && says.test(error.message));
    fails(() => readDocuments(missing), /missing\.json cannot be read: .*ENOENT/);
    fails(() => readDocuments(empty), /empty holds no documents/);

    const wrong: readonly (readonly [content: unknown, says: RegExp])[] = [
      ['{', /documents\.json is not valid JSON/],
      [[], /documents\.json must be an object/],
      ['null', /documents\.json must be an object/],
      [{}, /documents\.json holds no documents/],
      [{ a: 'query', b: 7 }, /documents\.json: the document "b" is not a string/],
      [{ format: 'x', version: 1, operations: [] }, /is not an apollo-persisted-query-manifest of version 1/],
      [{ format: 'apollo-persisted-query-manifest', version: 2, operations: [] }, /of version 1/],
      [
        {
          format: 'apollo-persisted-query-manifest',
          version: 1,
          operations: [{ id: 'x', body: '' }, { id: 'y' }],
        },
        /operations\[1\] needs an id and a body/,
      ],
    ];
    for (const [content, says] of wrong) {
      await assert.rejects(
        fromFile(content),
        (error) => error instanceof DocumentsError && says.test(error.message),
        JSON.stringify(content),
      );
    }
  });
});

describe('trusted documents', () => {
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
        assert.match(
          lines[1] ?? '',
          /the document "field": Cannot query field "helo".* \(line 2, column 3\)$/,
        );
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
      /onlyDocuments is set, but there are no documents/,
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
});
