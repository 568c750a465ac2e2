import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createClient } from 'graphql-sse';
import {
  checkShownRequests,
  runShownUntil,
  shownCommand,
  shownCommands,
  startExample,
} from '../support/shown-commands.ts';
import { ask } from './support/door.ts';

const SERVE = shownCommand('examples/graphql-plugin/README.md', /^npm exec -- node /);
const REQUESTS = shownCommands('examples/graphql-plugin/README.md', /^curl -s /);
const SUBSCRIBE = shownCommand('examples/graphql-plugin/README.md', /^curl -N /);

test('what the README of the example shows is what comes back', async () => {
  await using example = await startExample(SERVE);
  const urls = { graphql: example.origin };
  await checkShownRequests(REQUESTS, urls);
  const add = 'mutation { addBook(title: "Emil", author: "Kästner") { title } }';
  const said = await runShownUntil(SUBSCRIBE, { cwd: import.meta.dirname, urls }, async (text) => {
    await ask(`${example.origin}/graphql`, add, { 'x-reader': 'Ada' });
    return text.includes('bookAdded');
  });
  assert.match(said, /^data: ?{"data":{"bookAdded":{"title":"Emil"}}}$/m);
});

test('the example answers beside its own route, shows GraphiQL, and tells of new books until it stops', async () => {
  await using example = await startExample(SERVE);
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
