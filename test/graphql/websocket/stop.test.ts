import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createListener, type Listener } from '@portico/transport';
import { GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import { createClient } from 'graphql-ws';
import { pino } from 'pino';
import { WebSocket } from 'ws';
import { graphql } from '../../../src/graphql/graphql.ts';
import { graphqlErrors } from '../../../src/graphql/requests.ts';
import { within } from '../../support/running-time.ts';
import { waitFor } from '../../support/wait-for.ts';
import { ask, openDoor } from '../support/door.ts';
import { connectSocket, openSocket } from '../support/socket-client.ts';

const SUBSCRIPTION = 'subscription { userCreated { id name } }';

/** A door whose query and whose subscription wait until they are told. */
async function openSlowDoor(): Promise<
  AsyncDisposable & { listener: Listener; url: string; go(): void; asked(): number }
> {
  const slow = Promise.withResolvers<string>();
  let asked = 0;
  const wait = () => {
    asked++;
    return slow.promise;
  };
  const schema = new GraphQLSchema({
    query: new GraphQLObjectType({ name: 'Query', fields: { slow: { type: GraphQLString, resolve: wait } } }),
    subscription: new GraphQLObjectType({
      name: 'Subscription',
      fields: {
        ticks: {
          type: GraphQLString,
          resolve: (tick) => tick,
          async *subscribe() {
            yield 'first';
            await wait();
          },
        },
        late: {
          type: GraphQLString,
          async subscribe() {
            await wait();
            return (async function* () {
              await new Promise(() => {});
              yield 'never';
            })();
          },
        },
      },
    }),
  });
  const log = pino({ level: 'silent' });
  const listener = createListener({
    door: 'graphql',
    host: '127.0.0.1',
    port: 0,
    portHint: '',
    log,
    errors: graphqlErrors,
  });
  listener.app.register(graphql, { schema });
  const url = `${await listener.listen()}/graphql`;
  return {
    listener,
    url,
    go: () => slow.resolve('here'),
    asked: () => asked,
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
  };
}

describe('a stop', () => {
  test('completes subscriptions and closes with 1001', async () => {
    await using door = await openDoor();
    const clients = await Promise.all(Array.from({ length: 5 }, () => connectSocket(door.url)));
    for (const client of clients) {
      client.subscribe('1', SUBSCRIPTION);
      client.subscribe('2', SUBSCRIPTION);
      // The answer says that the subscriptions are open.
      client.send({ type: 'ping' });
      await client.next();
    }
    const [idle, early] = [await connectSocket(door.url), await openSocket(door.url)];
    await ask(door.url, 'mutation { createUser(name: "last", email: "a@b") { id } }');
    await within(4_000, () => door.service.current.stop());
    for (const { messages, closed } of clients) {
      assert.deepEqual(await closed, { code: 1001, reason: 'The service is stopping' });
      assert.deepEqual(
        messages.map(({ id, type }) => `${type} ${id}`),
        ['next 1', 'next 2', 'complete 1', 'complete 2'],
      );
    }
    for (const { messages, closed } of [idle, early]) {
      assert.equal((await closed).code, 1001);
      assert.deepEqual(messages, []);
    }
  });

  test('a client of graphql-ws sees its subscription complete, not fail', async () => {
    await using door = await openDoor();
    const url = door.url.replace('http:', 'ws:');
    const connected = Promise.withResolvers<unknown>();
    const client = createClient({
      url,
      webSocketImpl: WebSocket,
      retryAttempts: 0,
      on: { connected: connected.resolve },
    });
    const results = client.iterate({ query: SUBSCRIPTION });
    const first = results.next();
    await connected.promise;
    await client.iterate({ query: '{ hello }' }).next();
    await door.service.current.stop();
    assert.deepEqual(await first, { value: undefined, done: true });
  });

  test('waits for queries, takes no more, and ends sources that wait for ever', async () => {
    await using door = await openSlowDoor();
    const client = await connectSocket(door.url);
    client.subscribe('query', '{ slow }');
    client.subscribe('ticks', 'subscription { ticks }');
    assert.equal((await client.next()).type, 'next');
    await waitFor('both to wait', () => door.asked() === 2);
    assert.equal(door.listener.inProgress(), 1);
    const closing = door.listener.close(new AbortController().signal);
    assert.deepEqual(await client.next(), { id: 'ticks', type: 'complete' });
    client.subscribe('late', '{ slow }');
    const late = await client.next();
    assert.deepEqual([late.id, late.type, late.payload[0].extensions.code], ['late', 'error', 'STOPPING']);
    door.go();
    assert.deepEqual(await client.next(), { id: 'query', type: 'next', payload: { data: { slow: 'here' } } });
    assert.deepEqual(await client.next(), { id: 'query', type: 'complete' });
    assert.equal((await client.closed).code, 1001);
    await closing;
  });

  test('completes a subscription whose source opens only then', async () => {
    await using door = await openSlowDoor();
    const client = await connectSocket(door.url);
    client.subscribe('1', 'subscription { late }');
    await waitFor('the source', () => door.asked() === 1);
    const closing = door.listener.close(new AbortController().signal);
    await waitFor('the stop', () => !door.listener.app.server.listening);
    door.go();
    assert.deepEqual(await client.next(), { id: '1', type: 'complete' });
    assert.equal((await client.closed).code, 1001);
    await closing;
  });

  test('cuts a client that does not answer the close', async () => {
    await using door = await openDoor();
    const client = await connectSocket(door.url);
    // What comes is no longer read, so neither is the close.
    client.socket.pause();
    await within(7_000, () => door.service.current.stop());
    client.socket.resume();
    await client.closed;
  });

  test('cuts at its deadline what is still in progress', async () => {
    await using door = await openSlowDoor();
    const client = await connectSocket(door.url);
    client.subscribe('1', '{ slow }');
    await waitFor('the query', () => door.asked() === 1);
    const deadline = new AbortController();
    const closing = door.listener.close(deadline.signal);
    await waitFor('the port to be closed', () => !door.listener.app.server.listening);
    deadline.abort();
    await closing;
    assert.equal((await client.closed).code, 1006);
  });

  test('refuses a WebSocket that comes too late, or closes it', async () => {
    await using door = await openSlowDoor();
    const client = await connectSocket(door.url);
    client.subscribe('1', '{ slow }');
    await waitFor('the query', () => door.asked() === 1);
    const attempts = Array.from({ length: 20 }, () => openSocket(door.url).then(({ closed }) => closed));
    const closing = door.listener.close(new AbortController().signal);
    for (const attempt of await Promise.allSettled(attempts)) {
      if (attempt.status === 'fulfilled') assert.equal(attempt.value.code, 1001);
    }
    door.go();
    await client.closed;
    await closing;
  });
});

describe('WebSockets among the connections of a door', () => {
  test('count, and make room for nobody', async () => {
    await using door = await openDoor({ env: { HTTP_MAX_CONNECTIONS: '2' } });
    const first = await connectSocket(door.url);
    const second = await connectSocket(door.url);
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    await assert.rejects(fetch(door.url));
    for (const client of [first, second]) {
      client.subscribe('1', '{ hello }');
      assert.equal((await client.next()).type, 'next');
    }
    first.socket.close();
    await first.closed;
    await waitFor('room', () =>
      ask(door.url, '{ hello }').then(
        () => true,
        () => false,
      ),
    );
    second.socket.terminate();
  });
});
