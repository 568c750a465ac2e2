import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ApolloClient, gql, InMemoryCache } from '@apollo/client/core/index.js';
import { GraphQLWsLink } from '@apollo/client/link/subscriptions/index.js';
import { createClient as createUrqlClient, subscriptionExchange } from '@urql/core';
import { createClient } from 'graphql-ws';
import { WebSocket } from 'ws';
import { waitFor } from '../../support/wait-for.ts';
import { ask, openDoor } from '../support/door.ts';
import { startFeedApp } from '../support/plugin-app.ts';

const SUBSCRIPTION = 'subscription { userCreated { id name } }';
const mutation = (name: string) =>
  `mutation { createUser(name: "${name}", email: "${name}@example.org") { id } }`;

const clientOf = (url: string, webSocketImpl: unknown = WebSocket) =>
  createClient({ url: url.replace('http:', 'ws:'), webSocketImpl, retryAttempts: 0 });

describe('real clients over WebSockets', () => {
  for (const [name, implementation] of Object.entries({
    ws: WebSocket,
    "Node's WebSocket": globalThis.WebSocket,
  })) {
    test(`graphql-ws with ${name}: a subscription, until the client ends it`, async () => {
      await using app = await startFeedApp();
      const client = clientOf(app.url, implementation);
      const results = client.iterate<{ userCreated: unknown }>({ query: SUBSCRIPTION });
      const first = results.next();
      await waitFor('the subscriber', () => app.feed.subscribers === 1);
      for (const [index, who] of ['Ada', 'Grace', 'Edsger'].entries()) {
        await ask(app.url, mutation(who));
        const { value } = index === 0 ? await first : await results.next();
        assert.deepEqual(value, { data: { userCreated: { id: String(index + 3), name: who } } });
      }
      await results.return?.();
      await waitFor('no subscriber', () => app.feed.subscribers === 0);
      await client.dispose();
    });
  }

  test('graphql-ws: queries, mutations, variables and errors on one connection', async () => {
    await using door = await openDoor();
    const client = clientOf(door.url);
    const results = async (query: string, variables?: Record<string, unknown>) => {
      const found: unknown[] = [];
      for await (const result of client.iterate({ query, ...(variables && { variables }) }))
        found.push(result);
      return found;
    };
    assert.deepEqual(await results('{ hello }'), [{ data: { hello: 'Hello from Portico!' } }]);
    assert.deepEqual(await results(mutation('Ada')), [{ data: { createUser: { id: '3' } } }]);
    assert.deepEqual(await results('query ($id: ID!) { user(id: $id) { name } }', { id: '3' }), [
      { data: { user: { name: 'Ada' } } },
    ]);
    const [wrong] = (await results('query ($id: ID!) { user(id: $id) { name } }', { id: [] })) as [
      { errors: readonly { message: string }[] },
    ];
    assert.match(wrong.errors[0]?.message ?? '', /\$id/);
    await assert.rejects(results('{ nothing }'), (errors: readonly Error[]) => {
      assert.match(errors[0]?.message ?? '', /Cannot query field "nothing"/);
      return true;
    });
    await client.dispose();
  });

  test('graphql-ws: what HTTP refuses is refused, with the same codes', async () => {
    await using door = await openDoor({ env: { GRAPHQL_MAX_DEPTH: '1', GRAPHQL_INTROSPECTION: 'false' } });
    const client = clientOf(door.url);
    for (const query of [
      '{ users { id } }',
      '{ __schema { types { name } } }',
      '{',
      'query A { hello } query B { hello }',
    ]) {
      const http = (await ask(door.url, query)).body.errors;
      await assert.rejects(client.iterate({ query }).next(), (errors: readonly Error[]) => {
        assert.deepEqual(JSON.parse(JSON.stringify(errors)), http);
        return true;
      });
    }
    await client.dispose();
  });

  test('with users from the database, by way of REST', async () => {
    await using door = await openDoor({ env: { GRAPHQL_USERS: 'database', INTERFACES: 'graphql,rest' } });
    const client = clientOf(door.url);
    const names: unknown[] = [];
    const results = client.iterate<{ userCreated: { name: string } }>({ query: SUBSCRIPTION });
    const first = results.next();
    // A query behind it is answered once the subscription is open.
    await client.iterate({ query: '{ hello }' }).next();
    for (const name of ['a', 'b']) {
      const body = JSON.stringify({ name, email: `${name}@example.org` });
      await fetch(`${door.service.urls.rest}/users`, { method: 'POST', body });
    }
    for (const next of [first, results.next()]) names.push((await next).value?.data?.userCreated.name);
    assert.deepEqual(names, ['a', 'b']);
    await client.dispose();
  });

  test("Apollo Client's GraphQLWsLink", async () => {
    await using app = await startFeedApp();
    const socket = clientOf(app.url);
    const client = new ApolloClient({ link: new GraphQLWsLink(socket), cache: new InMemoryCache() });
    const seen: unknown[] = [];
    const subscription = client
      .subscribe({ query: gql(SUBSCRIPTION) })
      .subscribe(({ data }) => seen.push((data as { userCreated: { name: string } }).userCreated.name));
    await waitFor('the subscriber', () => app.feed.subscribers === 1);
    await client.mutate({ mutation: gql(mutation('Ada')) });
    await waitFor('the event', () => seen.length === 1);
    assert.deepEqual(seen, ['Ada']);
    const { data } = await client.query({ query: gql('{ users { name } }') });
    assert.equal((data as { users: readonly { name: string }[] }).users.at(-1)?.name, 'Ada');
    subscription.unsubscribe();
    await waitFor('no subscriber', () => app.feed.subscribers === 0);
    client.stop();
    await socket.dispose();
  });

  test("urql's subscriptionExchange", async () => {
    await using app = await startFeedApp();
    const socket = clientOf(app.url);
    const client = createUrqlClient({
      url: app.url,
      preferGetMethod: false,
      exchanges: [
        subscriptionExchange({
          forwardSubscription: ({ query = '' }) => ({
            subscribe: ({ next, error, complete }) => ({
              unsubscribe: socket.subscribe(
                { query },
                { next: (result) => next(result as Parameters<typeof next>[0]), error, complete },
              ),
            }),
          }),
        }),
      ],
    });
    const seen: unknown[] = [];
    const subscription = client
      .subscription(SUBSCRIPTION, {})
      .subscribe(({ data }) => seen.push(data?.userCreated.name));
    await waitFor('the subscriber', () => app.feed.subscribers === 1);
    await ask(app.url, mutation('Ada'));
    await waitFor('the event', () => seen.length === 1);
    assert.deepEqual(seen, ['Ada']);
    subscription.unsubscribe();
    await waitFor('no subscriber', () => app.feed.subscribers === 0);
    await socket.dispose();
  });
});
