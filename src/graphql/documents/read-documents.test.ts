import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { DocumentsError } from './documents-error.ts';
import { readDocuments } from './read-documents.ts';

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
    ['{', /documents\.json is no JSON/],
    [[], /documents\.json must be an object/],
    ['null', /documents\.json must be an object/],
    [{}, /documents\.json holds no documents/],
    [{ a: 'query', b: 7 }, /documents\.json: the document "b" is no text/],
    [{ format: 'x', version: 1, operations: [] }, /is no apollo-persisted-query-manifest of version 1/],
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
