import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { GraphQLError, GraphQLList, GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import { StoreUnavailableError } from '../../../src/core/errors.ts';
import { SlowSubscriberError } from '../../../src/relations/events.ts';
import { waitFor } from '../../support/wait-for.ts';
import { openDoor } from '../support/door.ts';
import { startFeedApp } from '../support/plugin-app.ts';
import { connectSocket, openSocket } from '../support/socket-client.ts';

const SUBSCRIPTION = 'subscription { userCreated { id name } }';

/** A schema whose query waits until it is told. */
function slowSchema() {
  const slow = Promise.withResolvers<string>();
  let asked = 0;
  const schema = new GraphQLSchema({
    query: new GraphQLObjectType({
      name: 'Query',
      fields: {
        slow: {
          type: GraphQLString,
          resolve() {
            asked++;
            return slow.promise;
          },
        },
      },
    }),
  });
  return { schema, go: () => slow.resolve('here'), asked: () => asked };
}

describe('the protocol graphql-transport-ws, by hand', () => {
  test('a ping gets a pong, at any time, with its payload', async () => {
    await using app = await startFeedApp();
    const client = await openSocket(app.url);
    client.send({ type: 'ping' });
    assert.deepEqual(await client.next(), { type: 'pong' });
    client.send({ type: 'connection_init', payload: { token: 'x' } });
    assert.deepEqual(await client.next(), { type: 'connection_ack' });
    client.send({ type: 'ping', payload: { at: 1 } });
    assert.deepEqual(await client.next(), { type: 'pong', payload: { at: 1 } });
    client.send({ type: 'pong' });
    client.subscribe('1', '{ hello }');
    assert.deepEqual(await client.next(), {
      id: '1',
      type: 'next',
      payload: { data: { hello: 'Hello from Portico!' } },
    });
    assert.deepEqual(await client.next(), { id: '1', type: 'complete' });
    client.socket.close();
  });

  const wrong: Readonly<Record<string, readonly [code: number, messages: readonly unknown[]]>> = {
    'an operation before the connection is acknowledged': [
      4401,
      [{ type: 'subscribe', id: '1', payload: { query: '{ hello }' } }],
    ],
    'a second connection_init': [4429, [{ type: 'connection_init' }, { type: 'connection_init' }]],
    'an id that is in use': [
      4409,
      [
        { type: 'connection_init' },
        { type: 'subscribe', id: '1', payload: { query: SUBSCRIPTION } },
        { type: 'subscribe', id: '1', payload: { query: SUBSCRIPTION } },
      ],
    ],
    'no JSON': [4400, ['{']],
    'no message': [4400, ['null']],
    'an unknown type': [4400, [{ type: 'start', id: '1', payload: { query: '{ hello }' } }]],
    'a type of the server': [4400, [{ type: 'next', id: '1', payload: {} }]],
    'no query': [4400, [{ type: 'connection_init' }, { type: 'subscribe', id: '1', payload: {} }]],
    'JSON that is nested too deeply': [
      4400,
      [`{"type":"ping","payload":${'{"a":'.repeat(64)}1${'}'.repeat(65)}`],
    ],
    'the key __proto__': [4400, ['{"type":"ping","payload":{"__proto__":{}}}']],
    'binary data': [1003, [Buffer.from('{"type":"ping"}')]],
    'text that is not UTF-8': [1007, [{ text: Buffer.from([0x22, 0xff, 0x22]) }]],
    'a message that is too large': [1009, [{ type: 'ping', payload: { text: 'x'.repeat(1_024) } }]],
  };
  for (const [what, [code, messages]] of Object.entries(wrong)) {
    test(`${what}: ${code}`, async () => {
      await using app = await startFeedApp({ maxBodyBytes: 1_024 });
      const { socket, send, closed } = await openSocket(app.url);
      for (const message of messages) {
        const { text } = Object(message) as { text?: Buffer };
        if (text !== undefined) socket.send(text, { binary: false });
        else if (typeof message === 'string' || Buffer.isBuffer(message)) socket.send(message);
        else send(message);
      }
      const { code: got, reason } = await closed;
      assert.equal(got, code);
      if (code >= 4400) assert.notEqual(reason, '');
      await waitFor('no subscriber', () => app.feed.subscribers === 0);
    });
  }

  test('a client that sends no connection_init: 4408', async () => {
    await using app = await startFeedApp();
    const client = await openSocket(app.url);
    assert.equal((await client.closed).code, 4408);
  });

  test('`complete` ends a subscription and leaves the others', async () => {
    await using app = await startFeedApp();
    const client = await connectSocket(app.url);
    client.subscribe('1', SUBSCRIPTION);
    client.subscribe('2', 'subscription { userCreated { name } }');
    await waitFor('two subscribers', () => app.feed.subscribers === 2);
    client.send({ type: 'complete', id: '1' });
    await waitFor('one subscriber', () => app.feed.subscribers === 1);
    app.feed.publish({ id: '9', name: 'Ada', email: 'a@b' });
    assert.deepEqual(await client.next(), {
      id: '2',
      type: 'next',
      payload: { data: { userCreated: { name: 'Ada' } } },
    });
    client.subscribe('1', SUBSCRIPTION);
    await waitFor('two subscribers', () => app.feed.subscribers === 2);
    assert.deepEqual(client.messages, []);
    client.socket.terminate();
  });

  test('what the program throws is masked; a GraphQLError is shown', async () => {
    const text = { type: GraphQLString };
    const fail = (error: Error) => () => {
      throw error;
    };
    const source = (error: Error) => () => ({
      next: () => Promise.reject(error),
      [Symbol.asyncIterator]() {
        return this;
      },
    });
    const schema = new GraphQLSchema({
      query: new GraphQLObjectType({
        name: 'Query',
        fields: {
          secret: { ...text, resolve: fail(new Error('secret')) },
          open: { ...text, resolve: fail(new GraphQLError('open')) },
        },
      }),
      subscription: new GraphQLObjectType({
        name: 'Subscription',
        fields: {
          noSource: { ...text, subscribe: fail(new Error('secret')) },
          broken: { ...text, subscribe: source(new Error('secret')) },
          refused: { ...text, subscribe: source(new GraphQLError('open')) },
          slow: { ...text, subscribe: source(new SlowSubscriberError('slow')) },
          noStore: { ...text, subscribe: source(new StoreUnavailableError('secret')) },
        },
      }),
    });
    await using app = await startFeedApp({ schema });
    const client = await connectSocket(app.url);
    const answers: Record<string, unknown> = {};
    for (const field of ['secret', 'open', 'noSource', 'broken', 'refused', 'slow', 'noStore']) {
      client.subscribe(
        field,
        `${field === 'secret' || field === 'open' ? 'query' : 'subscription'} { ${field} }`,
      );
      const { type, payload } = await client.next();
      const [{ message, extensions }] = type === 'error' ? payload : payload.errors;
      answers[field] = [type, message, extensions?.code];
      if (type === 'next') assert.equal((await client.next()).type, 'complete');
    }
    assert.deepEqual(answers, {
      secret: ['next', 'Internal server error', 'INTERNAL_SERVER_ERROR'],
      open: ['next', 'open', undefined],
      noSource: ['next', 'Internal server error', 'INTERNAL_SERVER_ERROR'],
      broken: ['error', 'Internal server error', 'INTERNAL_SERVER_ERROR'],
      refused: ['error', 'open', undefined],
      slow: ['error', 'slow', 'SLOW_SUBSCRIBER'],
      noStore: ['error', 'Service Unavailable', 'STORE_UNAVAILABLE'],
    });
    client.socket.terminate();
  });

  test('a list that is made in turns comes whole, in one message', async () => {
    const words = Array.from({ length: 200_000 }, (_, index) => `wörd ${index}`);
    const schema = new GraphQLSchema({
      query: new GraphQLObjectType({
        name: 'Query',
        fields: { words: { type: new GraphQLList(GraphQLString), resolve: () => words } },
      }),
    });
    await using app = await startFeedApp({ schema });
    const client = await connectSocket(app.url);
    client.subscribe('a "1"', '{ words }');
    const { payload, ...next } = await client.next();
    assert.deepEqual(next, { id: 'a "1"', type: 'next' });
    assert.equal(payload.data.words.length, words.length);
    assert.deepEqual(payload, { data: { words } });
    assert.deepEqual(await client.next(), { id: 'a "1"', type: 'complete' });
    client.socket.terminate();
  });

  test('a result beyond its limits is an error with a code', async () => {
    await using door = await openDoor({ env: { GRAPHQL_MAX_RESULT_VALUES: '3' } });
    const client = await connectSocket(door.url);
    client.subscribe('1', '{ users { id name email } }');
    const { payload } = await client.next();
    assert.equal(payload.errors[0].extensions.code, 'LIMIT_EXCEEDED');
    assert.equal(payload.data, null);
    client.socket.terminate();
  });
});

describe('limits of WebSockets', () => {
  test('operations on one connection: an error with its limit, until one has ended', async () => {
    await using app = await startFeedApp({ maxPerWebSocket: 2 });
    const client = await connectSocket(app.url);
    const other = await connectSocket(app.url);
    for (const id of ['1', '2', '3']) client.subscribe(id, SUBSCRIPTION);
    const { id, type, payload } = await client.next();
    assert.deepEqual([id, type], ['3', 'error']);
    assert.deepEqual(payload[0].extensions, {
      code: 'LIMIT_EXCEEDED',
      limit: 'maxPerWebSocket',
    });
    other.subscribe('1', SUBSCRIPTION);
    await waitFor('the other one', () => app.feed.subscribers === 3);
    client.send({ type: 'complete', id: '1' });
    await waitFor('one to end', () => app.feed.subscribers === 2);
    client.subscribe('3', SUBSCRIPTION);
    await waitFor('the next one', () => app.feed.subscribers === 3);
    client.socket.terminate();
    other.socket.terminate();
  });

  test('operations of all connections: an error with its limit, until one has gone', async () => {
    await using app = await startFeedApp({ maxSubscriptions: 2 });
    const client = await connectSocket(app.url);
    const other = await connectSocket(app.url);
    for (const id of ['1', '2']) client.subscribe(id, SUBSCRIPTION);
    await waitFor('two subscribers', () => app.feed.subscribers === 2);
    other.subscribe('1', '{ hello }');
    const { type, payload } = await other.next();
    assert.equal(type, 'error');
    assert.deepEqual(payload[0].extensions, { code: 'LIMIT_EXCEEDED', limit: 'maxSubscriptions' });
    client.socket.terminate();
    await waitFor('no subscriber', () => app.feed.subscribers === 0);
    other.subscribe('1', '{ hello }');
    assert.equal((await other.next()).type, 'next');
    other.socket.terminate();
  });

  test('a query counts until its result is sent, also when the client no longer wants it', async () => {
    const { schema, go, asked } = slowSchema();
    await using app = await startFeedApp({ schema, maxPerWebSocket: 1 });
    const client = await connectSocket(app.url);
    client.subscribe('1', '{ slow }');
    await waitFor('the resolver', () => asked() === 1);
    client.send({ type: 'complete', id: '1' });
    client.subscribe('2', '{ slow }');
    assert.equal((await client.next()).type, 'error');
    go();
    await waitFor('a free slot', async () => {
      client.subscribe('3', '{ slow }');
      return (await client.next()).type === 'next';
    });
    client.socket.terminate();
  });

  test('a query that never ends counts until its client has gone', async () => {
    const { schema, asked } = slowSchema();
    await using app = await startFeedApp({ schema, maxSubscriptions: 1 });
    const client = await connectSocket(app.url);
    client.subscribe('1', '{ slow }');
    await waitFor('the resolver', () => asked() === 1);
    client.socket.terminate();
    const other = await connectSocket(app.url);
    await waitFor('a free slot', async () => {
      other.subscribe('1', '{ slow __typename }');
      await waitFor('an answer', () => other.messages.length > 0 || asked() === 2);
      return other.messages.splice(0).length === 0;
    });
    other.socket.terminate();
  });

  test('connections: a 503 that says so, until one has gone', async () => {
    await using app = await startFeedApp({ maxWebSockets: 2 });
    const first = await connectSocket(app.url);
    await connectSocket(app.url);
    await assert.rejects(openSocket(app.url), /503/);
    first.socket.close();
    await first.closed;
    const again = await waitFor('room', () => connectSocket(app.url).catch(() => undefined));
    again.subscribe('1', '{ hello }');
    assert.equal((await again.next()).type, 'next');
  });
});
