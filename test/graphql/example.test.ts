import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createClient } from 'graphql-sse';
import { checkShownRequests, startExample } from '../support/example-process.ts';
import { ask } from './support/door.ts';

const EXAMPLE = 'graphql-plugin';

test('what the README of the example shows is what comes back', async () => {
  await using example = await startExample(EXAMPLE);
  await checkShownRequests(EXAMPLE, { 'http://127.0.0.1:4000': example.origin }, 3);
});

test('the example answers beside its own route, shows GraphiQL, and tells of new books until it stops', async () => {
  await using example = await startExample(EXAMPLE);
  assert.deepEqual(await (await fetch(example.origin)).json(), { hello: 'world' });
  const url = `${example.origin}/graphql`;
  const page = await fetch(url, { headers: { accept: 'text/html' } });
  assert.match(page.headers.get('content-type') ?? '', /^text\/html/);
  assert.deepEqual((await ask(url, '{ reader }', { 'x-reader': 'Ada' })).body.data, {
    reader: 'Ada',
  });

  const client = createClient({
    url,
    singleConnection: false,
    fetchFn: fetch,
    retryAttempts: 0,
  });
  const connected = Promise.withResolvers<void>();
  const query = 'subscription { bookAdded { title author } }';
  const added = client.iterate({ query }, { connected: () => connected.resolve() });
  const first = added.next();
  await connected.promise;
  const mutation = 'mutation { addBook(title: "Emil", author: "Kästner") { title } }';
  await ask(url, mutation, { 'x-reader': 'Ada' });
  assert.deepEqual((await first).value, { data: { bookAdded: { title: 'Emil', author: 'Kästner' } } });
  const end = added.next();
  assert.equal(await example.stop(), 0);
  assert.equal((await end).done, true);
});
