import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Client, createClient } from 'graphql-sse';
import { within } from '../support/running-time.ts';
import { waitFor } from '../support/wait-for.ts';
import { ask, openDoor } from './support/door.ts';

const userCreated = { query: 'subscription { userCreated { id name email } }' };
const mutation = (name: string) =>
  `mutation { createUser(name: "${name}", email: "${name}@example.org") { id } }`;

function clientOf(url: string): Client<false> {
  return createClient({ url, singleConnection: false, fetchFn: fetch, retryAttempts: 0 });
}

/** Everything that a stream brings, and a promise of its being open. */
function listen(client: Client<false>, request: { readonly query: string }) {
  const connected = Promise.withResolvers<void>();
  const results = client.iterate(request, { connected: () => connected.resolve() });
  return { results, connected: connected.promise };
}

async function all<T>(results: AsyncIterable<T>): Promise<readonly T[]> {
  const found: T[] = [];
  for await (const result of results) found.push(result);
  return found;
}

describe('subscriptions, by the client of graphql-sse', () => {
  test('tell of each user that a mutation creates', async () => {
    await using door = await openDoor();
    const { results, connected } = listen(clientOf(door.url), userCreated);
    await connected;
    for (const name of ['Ada', 'Grace', 'Edsger']) {
      await ask(door.url, mutation(name));
      const { value } = await results.next();
      const id = { Ada: '3', Grace: '4', Edsger: '5' }[name];
      assert.deepEqual(value, { data: { userCreated: { id, name, email: `${name}@example.org` } } });
    }
    await results.return?.();
  });

  test('tell every reader, each what it asked for', async () => {
    await using door = await openDoor();
    const first = listen(clientOf(door.url), userCreated);
    const second = listen(clientOf(door.url), { query: 'subscription { made: userCreated { name } }' });
    await Promise.all([first.connected, second.connected]);
    await ask(door.url, mutation('Ada'));
    assert.deepEqual((await second.results.next()).value, { data: { made: { name: 'Ada' } } });
    assert.equal((await first.results.next()).value.data.userCreated.name, 'Ada');
    await Promise.all([first.results.return?.(), second.results.return?.()]);
  });

  test('with users from the database, tell of those that REST creates too', async () => {
    await using door = await openDoor({ env: { GRAPHQL_USERS: 'database', INTERFACES: 'graphql,rest' } });
    const { results, connected } = listen(clientOf(door.url), userCreated);
    await connected;
    const post = (name: string) =>
      fetch(`${door.service.urls.rest}/users`, {
        method: 'POST',
        body: JSON.stringify({ name, email: `${name}@example.org` }),
      });
    for (const create of [
      () => post('rest'),
      () => ask(door.url, mutation('graphql')),
      () => post('again'),
    ]) {
      await create();
    }
    const names: unknown[] = [];
    for (let count = 0; count < 3; count++) names.push((await results.next()).value.data.userCreated.name);
    assert.deepEqual(names, ['rest', 'graphql', 'again']);
    await post('bad').then(() => post(''));
    assert.equal((await results.next()).value.data.userCreated.name, 'bad');
    await results.return?.();
  });

  test('with users from the database, tell of those that REST updates and deletes', async () => {
    await using door = await openDoor({ env: { GRAPHQL_USERS: 'database', INTERFACES: 'graphql,rest' } });
    const updated = listen(clientOf(door.url), { query: 'subscription { userUpdated { id name } }' });
    const deleted = listen(clientOf(door.url), { query: 'subscription { userDeleted { id name email } }' });
    await Promise.all([updated.connected, deleted.connected]);
    const send = (method: string, path: string, name?: string) =>
      fetch(`${door.service.urls.rest}${path}`, {
        method,
        ...(name === undefined ? {} : { body: JSON.stringify({ name, email: 'a@b' }) }),
      });
    await send('POST', '/users', 'Ada');
    await send('PUT', '/update/1', 'Ada King');
    await send('DELETE', '/delete/1');
    assert.deepEqual((await updated.results.next()).value, {
      data: { userUpdated: { id: '1', name: 'Ada King' } },
    });
    assert.deepEqual((await deleted.results.next()).value, {
      data: { userDeleted: { id: '1', name: 'Ada King', email: 'a@b' } },
    });
    await Promise.all([updated.results.return?.(), deleted.results.return?.()]);
  });

  test('with users in memory, do not tell of those of REST', async () => {
    await using door = await openDoor({ env: { INTERFACES: 'graphql,rest' } });
    const { results, connected } = listen(clientOf(door.url), userCreated);
    await connected;
    const body = JSON.stringify({ name: 'rest', email: 'rest@example.org' });
    assert.equal((await fetch(`${door.service.urls.rest}/users`, { method: 'POST', body })).status, 200);
    await ask(door.url, mutation('memory'));
    assert.equal((await results.next()).value.data.userCreated.name, 'memory');
    await results.return?.();
  });

  test('a document that is not valid comes as one event with errors', async () => {
    await using door = await openDoor();
    for (const query of [
      'subscription { nothing }',
      'subscription {',
      'subscription { userCreated { nothing } }',
    ]) {
      const results = await all(clientOf(door.url).iterate({ query }));
      assert.equal(results.length, 1);
      assert.equal(results[0]?.data, undefined);
      assert.equal(typeof results[0]?.errors?.[0]?.message, 'string');
    }
  });

  test('queries and mutations come as one event', async () => {
    await using door = await openDoor();
    const client = clientOf(door.url);
    assert.deepEqual(await all(client.iterate({ query: '{ hello }' })), [
      { data: { hello: 'Hello from Portico!' } },
    ]);
    const query = 'query ($id: ID!) { user(id: $id) { id } }';
    assert.deepEqual(await all(client.iterate({ query, variables: { id: '1' } })), [
      { data: { user: { id: '1' } } },
    ]);
    assert.deepEqual(await all(client.iterate({ query: mutation('Ada') })), [
      { data: { createUser: { id: '3' } } },
    ]);
  });

  test('a stop ends the streams as complete, at once', async () => {
    await using door = await openDoor();
    const streams = Array.from({ length: 5 }, () => listen(clientOf(door.url), userCreated));
    await Promise.all(streams.map(({ connected }) => connected));
    await ask(door.url, mutation('last'));
    await within(4_000, () => door.service.current.stop());
    for (const { results } of streams) {
      assert.deepEqual(
        (await all(results)).map(({ data }) => data?.userCreated),
        [{ id: '3', name: 'last', email: 'last@example.org' }],
      );
    }
  });
});

describe('event streams, as they are sent', () => {
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify(userCreated);

  test('a subscription whose reader takes no event stream is a 406 that says so', async () => {
    await using door = await openDoor();
    for (const accept of ['*/*', 'application/json', 'application/graphql-response+json, application/json']) {
      const { status, body: answer } = await ask(door.url, userCreated, { accept });
      assert.equal(status, 406);
      assert.match(answer.errors?.[0]?.message ?? '', /Accept: text\/event-stream/);
    }
    const url = `${door.url}?query=${encodeURIComponent(userCreated.query)}`;
    assert.equal((await fetch(url)).status, 406);
  });

  test('by POST and by GET, with the headers that proxies need, to the end', async () => {
    await using door = await openDoor();
    const accept = 'text/event-stream';
    const url = `${door.url}?query=${encodeURIComponent(userCreated.query)}`;
    const responses = [
      await fetch(door.url, { method: 'POST', headers: { ...headers, accept }, body }),
      await fetch(url, { headers: { accept } }),
    ];
    await ask(door.url, mutation('Ada'));
    await door.service.current.stop();
    for (const response of responses) {
      assert.equal(response.status, 200);
      assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8');
      assert.equal(response.headers.get('cache-control'), 'no-store');
      assert.equal(response.headers.get('x-accel-buffering'), 'no');
      assert.match(response.headers.get('x-request-id') ?? '', /./);
      const user = '{"id":"3","name":"Ada","email":"Ada@example.org"}';
      assert.equal(
        await response.text(),
        `event: next\ndata: {"data":{"userCreated":${user}}}\n\nevent: complete\ndata: \n\n`,
      );
    }
  });

  test('a reader that takes both gets events for a subscription and JSON for a query', async () => {
    await using door = await openDoor();
    const accept = { accept: 'text/event-stream, application/json' };
    assert.equal((await ask(door.url, '{ hello }', accept)).type, 'application/json; charset=utf-8');
    const response = await fetch(door.url, { method: 'POST', headers: { ...headers, ...accept }, body });
    assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8');
    await response.body?.cancel();
  });

  test('a mutation by GET is refused as an event stream too', async () => {
    await using door = await openDoor();
    const url = `${door.url}?query=${encodeURIComponent(mutation('Ada'))}`;
    assert.equal((await fetch(url, { headers: { accept: 'text/event-stream' } })).status, 405);
    assert.equal((await ask(door.url, '{ users { id } }')).text.match(/"id"/g)?.length, 2);
  });

  test('a name with line breaks stays one event', async () => {
    await using door = await openDoor();
    const { results, connected } = listen(clientOf(door.url), userCreated);
    await connected;
    const query = 'mutation ($name: String!) { createUser(name: $name, email: "a@b") { id } }';
    const name = 'a\nb\r\ndata: c\n\nevent: complete\n\n\u2028é𝒳';
    await ask(door.url, { query, variables: { name } });
    assert.equal((await results.next()).value.data.userCreated.name, name);
    await results.return?.();
  });

  test('streams do not keep each other waiting', async () => {
    await using door = await openDoor();
    const streams = Array.from({ length: 50 }, () => listen(clientOf(door.url), userCreated));
    await Promise.all(streams.map(({ connected }) => connected));
    for (let count = 0; count < 20; count++) await ask(door.url, mutation(`n${count}`));
    await waitFor('all events', async () => {
      for (const { results } of streams) {
        for (let count = 0; count < 20; count++) {
          assert.equal((await results.next()).value.data.userCreated.name, `n${count}`);
        }
      }
      return true;
    });
    for (const { results } of streams) await results.return?.();
  });
});
