import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import {
  ApolloClient,
  ApolloLink,
  CombinedGraphQLErrors,
  gql,
  HttpLink,
  InMemoryCache,
} from '@apollo/client';
import { BatchHttpLink } from '@apollo/client/link/batch-http';
import { createPersistedQueryLink } from '@apollo/client/link/persisted-queries';
import { print } from 'graphql';
import { openDoor, trustedFile } from '../support/door.ts';
import { aborted, slowField, startSlowApp } from '../support/plugin-app.ts';
import { linesOf, recordedFetch } from './recorded-fetch.ts';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const USER = gql`query User($id: ID!) { user(id: $id) { id } }`;
const CREATE = gql`mutation Create($name: String!) { createUser(name: $name, email: "ada@example.org") { name } }`;
const variables = { id: '1' };
const found = { user: { __typename: 'User', id: '1' } };

/** A client, and what it has sent. */
function clientOf(uri: string, link?: ApolloLink) {
  const { fetch, requests } = recordedFetch();
  const http = new HttpLink({ uri, fetch });
  const client = new ApolloClient({
    cache: new InMemoryCache(),
    link: link === undefined ? http : ApolloLink.from([link, http]),
    defaultOptions: { query: { fetchPolicy: 'network-only' } },
  });
  return { client, sent: () => linesOf(requests) };
}

test('queries, mutations and errors as text', async () => {
  await using door = await openDoor();
  const { client, sent } = clientOf(door.url);
  assert.deepEqual((await client.query({ query: USER, variables })).data, found);
  const created = await client.mutate({ mutation: CREATE, variables: { name: 'Ada' } });
  assert.deepEqual(created.data, { createUser: { __typename: 'User', name: 'Ada' } });
  const wrong = client.query({ query: gql`{ nothing }` });
  await assert.rejects(wrong, (error) => CombinedGraphQLErrors.is(error) && /nothing/.test(error.message));
  assert.deepEqual(sent(), ['POST text 200', 'POST text 200', 'POST text 400 INVALID_DOCUMENT']);
});

for (const useGETForHashedQueries of [false, true]) {
  const method = useGETForHashedQueries ? 'GET' : 'POST';
  test(`automatic persisted queries, by ${method}: the text travels once for all clients`, async () => {
    await using door = await openDoor();
    const open = () => clientOf(door.url, createPersistedQueryLink({ sha256, useGETForHashedQueries }));
    const first = open();
    assert.deepEqual((await first.client.query({ query: USER, variables })).data, found);
    assert.deepEqual((await first.client.query({ query: USER, variables })).data, found);
    const second = open();
    assert.deepEqual((await second.client.query({ query: USER, variables })).data, found);
    const [miss, register, ...others] = first.sent();
    assert.equal(miss, `${method} name 400 PERSISTED_QUERY_NOT_FOUND`);
    assert.match(register ?? '', /^(?:GET|POST) text 200$/);
    assert.deepEqual([others, second.sent()], [[`${method} name 200`], [`${method} name 200`]]);
    await first.client.mutate({ mutation: CREATE, variables: { name: 'Ada' } });
    assert.deepEqual(first.sent().slice(3), ['POST name 400 PERSISTED_QUERY_NOT_FOUND', 'POST text 200']);
  });
}

test('where they are turned off it asks once, and sends texts from then on', async () => {
  await using door = await openDoor({ env: { GRAPHQL_PERSISTED_QUERIES: 'false' } });
  const { client, sent } = clientOf(door.url, createPersistedQueryLink({ sha256 }));
  for (let i = 0; i < 2; i++) assert.deepEqual((await client.query({ query: USER, variables })).data, found);
  const refused = 'POST name 400 PERSISTED_QUERY_NOT_SUPPORTED';
  assert.deepEqual(sent(), [refused, 'POST text 200', 'POST text 200']);
});

test('trusted documents by the ids of a manifest, and nothing else', async () => {
  // As Apollo's generator writes it; the client's cache adds __typename.
  const body = print(new InMemoryCache().transformDocument(USER));
  const manifest = {
    format: 'apollo-persisted-query-manifest',
    version: 1,
    operations: [{ id: 'user-1', name: 'User', type: 'query', body }],
  };
  await using trusted = await trustedFile(manifest);
  await using door = await openDoor({ env: { ...trusted.env, GRAPHQL_ONLY_DOCUMENTS: 'true' } });
  const generateHash = (document: typeof USER) => (print(document) === body ? 'user-1' : 'unknown');
  const { client, sent } = clientOf(door.url, createPersistedQueryLink({ generateHash }));
  assert.deepEqual((await client.query({ query: USER, variables })).data, found);
  await assert.rejects(client.query({ query: gql`{ hello }` }), /No trusted document has this id/);
  assert.deepEqual(sent(), ['POST name 200', 'POST name 400 DOCUMENT_NOT_FOUND']);
});

test('batches', async () => {
  await using door = await openDoor({ env: { GRAPHQL_MAX_BATCH: '5' } });
  const { fetch, requests } = recordedFetch();
  const link = new BatchHttpLink({ uri: door.url, fetch, batchMax: 5 });
  const client = new ApolloClient({ cache: new InMemoryCache(), link });
  const [user, hello, wrong] = await Promise.allSettled([
    client.query({ query: USER, variables }),
    client.query({ query: gql`{ hello }` }),
    client.query({ query: gql`{ nothing }` }),
  ]);
  assert.deepEqual(user.status === 'fulfilled' && user.value.data, found);
  assert.deepEqual(hello.status === 'fulfilled' && hello.value.data, { hello: 'Hello from Portico!' });
  assert.equal(wrong.status, 'rejected');
  assert.deepEqual(linesOf(requests), ['POST text 200']);
});

test('a query that nobody waits for any more ends at the server', async () => {
  const slow = slowField();
  await using app = await startSlowApp({ slow: slow.config });
  const { client } = clientOf(app.url);
  const watched = client.watchQuery({ query: gql`{ slow }` }).subscribe({ next() {}, error() {} });
  const signal = await slow.begun;
  watched.unsubscribe();
  await aborted(signal);
  slow.finish();
});
