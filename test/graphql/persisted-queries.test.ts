import assert from 'node:assert/strict';
import crypto, { createHash } from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { after, before, describe, test } from 'node:test';
import { createFindOperation } from '@portico/graphql-plans';
import { buildSchema } from 'graphql';
import { withDefaults } from '../../src/graphql/graphql.ts';
import { ask, assertRefused, type GraphqlDoor, openDoor, sendAs } from './support/door.ts';

const JSON_TYPE = 'application/json';
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const named = (sha256Hash: string) => ({ persistedQuery: { version: 1, sha256Hash } });
const NOT_FOUND = {
  code: 'PERSISTED_QUERY_NOT_FOUND',
  message: /^PersistedQueryNotFound$/,
  legacy: 200,
} as const;

let number = 0;
/** A document that nobody has sent yet. */
const fresh = () => `{ a${number++}: hello }`;

describe('automatic persisted queries', () => {
  let door: GraphqlDoor;
  before(async () => {
    door = await openDoor();
  });
  after(() => door[Symbol.asyncDispose]());

  const post = (body: object) => sendAs(door.url, JSON_TYPE, { body });

  test('a hash that nobody has registered is not found, by POST and by GET, and no cache keeps that', async () => {
    const extensions = named(sha256(fresh()));
    await assertRefused(door.url, { body: { extensions } }, NOT_FOUND);
    await assertRefused(door.url, { params: { extensions: JSON.stringify(extensions) } }, NOT_FOUND);
    const { headers } = await post({ extensions });
    assert.equal(headers.get('cache-control'), 'no-store');
  });

  for (const method of ['POST', 'GET']) {
    test(`what was sent with its hash once by ${method} runs by its hash, by POST and by GET`, async () => {
      const query = fresh();
      const extensions = named(sha256(query));
      const params = { extensions: JSON.stringify(extensions) };
      const both = method === 'POST' ? { body: { query, extensions } } : { params: { query, ...params } };
      const first = await sendAs(door.url, JSON_TYPE, both);
      assert.deepEqual(Object.values(first.body.data ?? {}), ['Hello from Portico!']);
      assert.equal((await post({ extensions })).text, first.text);
      assert.equal((await sendAs(door.url, JSON_TYPE, { params })).text, first.text);
      assert.equal((await ask(door.url, query)).text, first.text);
    });
  }

  test('the hash brings variables and the name of an operation', async () => {
    const query = 'query A($id: ID!) { user(id: $id) { id } } query B { hello }';
    const extensions = named(sha256(query));
    await post({ query, operationName: 'B', extensions });
    const { body } = await post({ operationName: 'A', variables: { id: '1' }, extensions });
    assert.deepEqual(body, { data: { user: { id: '1' } } });
  });

  test('a hash that is not that of the query is refused, and registers nothing', async () => {
    const [query, other] = [fresh(), fresh()];
    const mismatch = {
      code: 'PERSISTED_QUERY_MISMATCH',
      message: /does not match the query/,
      legacy: 200,
    } as const;
    const extensions = named(sha256(other));
    await assertRefused(door.url, { body: { query, extensions } }, mismatch);
    await assertRefused(door.url, { body: { extensions } }, NOT_FOUND);
    // Nor may somebody take the place of what is registered.
    await post({ query: other, extensions });
    await assertRefused(door.url, { body: { query, extensions } }, mismatch);
  });

  test('a document that is refused is not registered', async () => {
    const query = `{ nothing${number++} }`;
    const extensions = named(sha256(query));
    assert.match((await post({ query, extensions })).text, /Cannot query field/);
    await assertRefused(door.url, { body: { extensions } }, NOT_FOUND);
  });

  test('an extension that is no hash is a 400 for all', async () => {
    for (const persistedQuery of [7, {}, { version: 2, sha256Hash: sha256('{hello}') }]) {
      await assertRefused(
        door.url,
        { body: { extensions: { persistedQuery } } },
        { code: 'MALFORMED_REQUEST', message: /"persistedQuery"/, legacy: 400 },
      );
    }
  });

  test('a registered mutation runs by POST only', async () => {
    const query = 'mutation { createUser(name: "Ada", email: "ada@example.org") { id } }';
    const extensions = named(sha256(query));
    await post({ query, extensions });
    const params = { extensions: JSON.stringify(extensions) };
    const { status, headers } = await sendAs(door.url, JSON_TYPE, { params });
    assert.deepEqual([status, headers.get('allow')], [405, 'POST']);
    assert.equal((await post({ extensions })).status, 200);
  });

  test('a registered subscription is an event stream', async () => {
    const query = 'subscription { userCreated { id } }';
    const extensions = named(sha256(query));
    const needs = await post({ query, extensions });
    assert.deepEqual([needs.status, needs.headers.get('x-error-code')], [406, 'NEEDS_EVENT_STREAM']);
    const params = new URLSearchParams({ extensions: JSON.stringify(extensions) });
    const stream = await fetch(`${door.url}?${params}`, { headers: { accept: 'text/event-stream' } });
    assert.equal(stream.headers.get('content-type'), 'text/event-stream; charset=utf-8');
    await stream.body?.cancel();
  });
});

test('turned off, a hash alone says so, and a query beside one runs', async () => {
  await using door = await openDoor({ env: { GRAPHQL_PERSISTED_QUERIES: 'false' } });
  const query = fresh();
  const extensions = named(sha256(query));
  const { body } = await sendAs(door.url, JSON_TYPE, { body: { query, extensions } });
  assert.deepEqual(Object.values(body.data ?? {}), ['Hello from Portico!']);
  const off = {
    code: 'PERSISTED_QUERY_NOT_SUPPORTED',
    message: /^PersistedQueryNotSupported$/,
    legacy: 200,
  } as const;
  await assertRefused(door.url, { body: { extensions } }, off);
  await assertRefused(door.url, { params: { extensions: JSON.stringify(extensions) } }, off);
});

const schema = buildSchema('type Query { hello: String }');
const params = (hash: string, query?: string) => ({
  query,
  hash,
  operationName: undefined,
  variables: undefined,
});

test('a registered document is found without hashing anything', (t) => {
  const find = createFindOperation(withDefaults({ schema }));
  const text = '{ hello }';
  const hash = sha256(text);
  const operation = find(params(hash, text));
  const hashing = t.mock.method(crypto, 'createHash');
  syncBuiltinESMExports();
  t.after(() => {
    hashing.mock.restore();
    syncBuiltinESMExports();
  });
  assert.equal(find(params(hash)), operation);
  assert.equal(find(params(hash, text)), operation);
  assert.equal(hashing.mock.callCount(), 0);
  find(params(hash, `${text} `));
  assert.equal(hashing.mock.callCount(), 1);
});

test('registered documents are bounded in bytes: those that are not used are forgotten, with others they stay', () => {
  const find = createFindOperation(withDefaults({ schema, maxCacheBytes: 256 * 1024 }));
  const isKnown = (hash: string) => !('errors' in find(params(hash)));
  const texts = Array.from({ length: 200 }, (_, i) => `{ a${i}: hello } #${'x'.repeat(200)}`);
  const [used = '', unused = ''] = texts;
  for (const text of texts) {
    find(params(sha256(text), text));
    assert.ok(isKnown(sha256(used)), text);
  }
  assert.equal(isKnown(sha256(unused)), false);
  // Half of 32 KiB at least, at less than a KiB each.
  const known = texts.filter((text) => isKnown(sha256(text)));
  assert.ok(known.length >= 15 && known.length <= 36, `${known.length} are known`);
});

test('what the cache of parsed documents has forgotten is parsed again', () => {
  const find = createFindOperation(withDefaults({ schema, maxCacheBytes: 64 * 1024 }));
  const text = '{ hello }';
  find(params(sha256(text), text));
  for (let i = 0; i < 100; i++)
    find({ query: `{ a${i}: hello }`, operationName: undefined, variables: undefined });
  assert.ok(!('errors' in find(params(sha256(text)))));
});
