import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client, type Exchange, fetchExchange, gql, stringifyDocument } from '@urql/core';
import { persistedExchange } from '@urql/exchange-persisted';
import { openDoor, trustedFile } from '../support/door.ts';
import { aborted, slowField, startSlowApp } from '../support/plugin-app.ts';
import { linesOf, recordedFetch } from './recorded-fetch.ts';

const USER = gql`query User($id: ID!) { user(id: $id) { id } }`;
const CREATE = gql`mutation Create($name: String!) { createUser(name: $name, email: "ada@example.org") { name } }`;
const variables = { id: '1' };
const found = { user: { id: '1' } };

/** A client, and what it has sent. */
function clientOf(url: string, ...exchanges: readonly Exchange[]) {
  const { fetch, requests } = recordedFetch();
  const client = new Client({ url, fetch, exchanges: [...exchanges, fetchExchange], preferGetMethod: false });
  return { client, sent: () => linesOf(requests) };
}

test('queries, mutations and errors as text', async () => {
  await using door = await openDoor();
  const { client, sent } = clientOf(door.url);
  assert.deepEqual((await client.query(USER, variables)).data, found);
  assert.deepEqual((await client.mutation(CREATE, { name: 'Ada' })).data, { createUser: { name: 'Ada' } });
  const { data, error } = await client.query('{ nothing }', {});
  assert.equal(data, undefined);
  assert.match(error?.graphQLErrors[0]?.message ?? '', /Cannot query field "nothing"/);
  assert.deepEqual(sent(), ['POST text 200', 'POST text 200', 'POST text 400 INVALID_DOCUMENT']);
});

test('queries by GET', async () => {
  await using door = await openDoor();
  const { client, sent } = clientOf(door.url);
  const { data } = await client.query(USER, variables, { preferGetMethod: 'force' });
  assert.deepEqual([data, sent()], [found, ['GET text 200']]);
});

for (const preferGetForPersistedQueries of [false, 'force'] as const) {
  const method = preferGetForPersistedQueries === 'force' ? 'GET' : 'POST';
  test(`automatic persisted queries, by ${method}: the text travels once for all clients`, async () => {
    await using door = await openDoor();
    const open = () =>
      clientOf(door.url, persistedExchange({ preferGetForPersistedQueries, enableForMutation: true }));
    const [first, second] = [open(), open()];
    for (const { client } of [first, first, second]) {
      assert.deepEqual((await client.query(USER, variables)).data, found);
    }
    const [miss, register, ...others] = first.sent();
    assert.equal(miss, `${method} name 400 PERSISTED_QUERY_NOT_FOUND`);
    assert.match(register ?? '', /^(?:GET|POST) text 200$/);
    assert.deepEqual([others, second.sent()], [[`${method} name 200`], [`${method} name 200`]]);
    const created = await first.client.mutation(CREATE, { name: 'Ada' });
    assert.deepEqual(created.data, { createUser: { name: 'Ada' } });
    assert.deepEqual(first.sent().slice(3), ['POST name 400 PERSISTED_QUERY_NOT_FOUND', 'POST text 200']);
  });
}

test('where they are turned off it asks once, and sends texts from then on', async () => {
  await using door = await openDoor({ env: { GRAPHQL_PERSISTED_QUERIES: 'false' } });
  const { client, sent } = clientOf(door.url, persistedExchange({ preferGetForPersistedQueries: false }));
  for (let i = 0; i < 2; i++) assert.deepEqual((await client.query(USER, variables)).data, found);
  const refused = 'POST name 400 PERSISTED_QUERY_NOT_SUPPORTED';
  assert.deepEqual(sent(), [refused, 'POST text 200', 'POST text 200']);
});

test('trusted documents by their hashes, and nothing else', async () => {
  await using trusted = await trustedFile({ user: stringifyDocument(USER) });
  await using door = await openDoor({ env: { ...trusted.env, GRAPHQL_ONLY_DOCUMENTS: 'true' } });
  const exchange = persistedExchange({
    enforcePersistedQueries: true,
    preferGetForPersistedQueries: false,
  });
  const { client, sent } = clientOf(door.url, exchange);
  assert.deepEqual((await client.query(USER, variables)).data, found);
  const { error } = await client.query('{ hello }', {});
  assert.equal(error?.graphQLErrors[0]?.extensions.code, 'DOCUMENT_NOT_FOUND');
  assert.deepEqual(sent(), ['POST name 200', 'POST name 400 DOCUMENT_NOT_FOUND']);
});

test('a query that nobody waits for any more ends at the server', async () => {
  const slow = slowField();
  await using app = await startSlowApp({ slow: slow.config });
  const { client } = clientOf(app.url);
  const { unsubscribe } = client.query('{ slow }', {}).subscribe(() => {});
  const signal = await slow.begun;
  unsubscribe();
  await aborted(signal);
  slow.finish();
});
