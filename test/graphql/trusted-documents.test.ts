import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { startPortico } from '../support/portico-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { assertRefused, openDoor, sendAs, trustedFile } from './support/door.ts';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const USER = 'query User($id: ID!) { user(id: $id) { id } }';
const CREATE = 'mutation { createUser(name: "Ada", email: "ada@example.org") { id } }';
const documents = { user: USER, create: CREATE, created: 'subscription { userCreated { id } }' };

/** A door with these documents in a file; the file is needed at the start only. */
async function openTrusting(env: Readonly<Record<string, string>> = {}) {
  await using trusted = await trustedFile(documents);
  return await openDoor({ env: { ...trusted.env, ...env } });
}

const UNKNOWN = {
  code: 'DOCUMENT_NOT_FOUND',
  message: /^No trusted document has this id$/,
  legacy: 200,
} as const;
const hashed = (query: string) => ({ persistedQuery: { version: 1, sha256Hash: sha256(query) } });

for (const only of ['false', 'true']) {
  test(`a trusted document runs by its id however it is named, also with others refused: ${only}`, async () => {
    await using door = await openTrusting({ GRAPHQL_ONLY_DOCUMENTS: only });
    const variables = { id: '1' };
    const names = [
      { documentId: 'user' },
      { doc_id: 'user' },
      { documentId: `sha256:${sha256(USER)}` },
      { extensions: hashed(USER) },
      { query: USER },
      { query: USER, extensions: hashed(USER) },
    ];
    for (const name of names) {
      const { text } = await sendAs(door.url, 'application/json', { body: { ...name, variables } });
      assert.equal(text, '{"data":{"user":{"id":"1"}}}', JSON.stringify(name));
      const params = Object.entries({ ...name, variables }).map(
        ([key, value]) => [key, typeof value === 'string' ? value : JSON.stringify(value)] as const,
      );
      const byGet = await sendAs(door.url, 'application/json', { params: Object.fromEntries(params) });
      assert.equal(byGet.text, text, JSON.stringify(name));
    }
    await assertRefused(door.url, { body: { documentId: 'nobody' } }, UNKNOWN);
    await assertRefused(door.url, { params: { documentId: 'nobody' } }, UNKNOWN);
    const typed = { code: 'MALFORMED_REQUEST', message: /"doc_id" must be a string/, legacy: 400 } as const;
    await assertRefused(door.url, { body: { doc_id: 7 } }, typed);
    const mismatch = {
      code: 'PERSISTED_QUERY_MISMATCH',
      message: /does not match the query/,
      legacy: 200,
    } as const;
    await assertRefused(door.url, { body: { query: '{ hello }', extensions: hashed(USER) } }, mismatch);
  });
}

test('a trusted mutation runs by POST only, a trusted subscription is an event stream', async () => {
  await using door = await openTrusting();
  const byGet = await sendAs(door.url, 'application/json', { params: { documentId: 'create' } });
  assert.deepEqual([byGet.status, byGet.headers.get('allow')], [405, 'POST']);
  const byPost = await sendAs(door.url, 'application/json', { body: { documentId: 'create' } });
  assert.equal(byPost.text, '{"data":{"createUser":{"id":"3"}}}');
  const accept = { accept: 'text/event-stream' };
  const stream = await fetch(`${door.url}?documentId=created`, { headers: accept });
  assert.equal(stream.headers.get('content-type'), 'text/event-stream; charset=utf-8');
  await stream.body?.cancel();
});

test('where only they run, all else is refused with a code, introspection too, and nothing is registered', async () => {
  await using door = await openTrusting({ GRAPHQL_ONLY_DOCUMENTS: 'true' });
  const required = {
    code: 'DOCUMENT_REQUIRED',
    message: /Only trusted documents run here/,
    legacy: 200,
  } as const;
  for (const query of ['{ hello }', `${USER} `, '{ __schema { queryType { name } } }', '{']) {
    await assertRefused(door.url, { body: { query } }, required);
    await assertRefused(door.url, { params: { query } }, required);
    await assertRefused(door.url, { body: { query, extensions: hashed(query) } }, required);
    // A client that asks by hash first is told at once that the text would not help.
    await assertRefused(door.url, { body: { extensions: hashed(query) } }, UNKNOWN);
  }
});

test('without them an id is unknown, and with them others run as ever', async () => {
  await using without = await openDoor();
  await assertRefused(without.url, { body: { documentId: 'user' } }, UNKNOWN);
  await using door = await openTrusting();
  const { text } = await sendAs(door.url, 'application/json', {
    body: { query: '{ hello }', documentId: 'user' },
  });
  assert.equal(text, '{"data":{"hello":"Hello from Portico!"}}');
});

test('a document that does not fit the schema stops the start: the file and the document are named', async () => {
  await using folder = await temporaryFolder();
  await writeFile(join(folder.path, 'documents.json'), JSON.stringify({ ...documents, old: '{ helo }' }));
  const env = { INTERFACES: 'graphql', GRAPHQL_DOCUMENTS: 'documents.json' };
  await using portico = startPortico({ cwd: folder.path, env });
  assert.equal(await portico.exited(), 1);
  assert.equal(
    portico.stderr,
    'portico: The trusted GraphQL documents cannot be used:\n' +
      '  - documents.json: the document "old": Cannot query field "helo" on type "Query". Did you mean "hello"? (line 1, column 3)\n',
  );
});
