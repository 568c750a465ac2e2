import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, mock, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import { heapInUse } from '../../support/collect-garbage.ts';
import { waitFor } from '../../support/wait-for.ts';
import { startFeedApp } from '../support/plugin-app.ts';
import { connectSocket } from '../support/socket-client.ts';

const SUBSCRIPTION = 'subscription { userCreated { id name } }';
const LARGE = 'x'.repeat(100_000);

describe('what is left of a connection', () => {
  test('nothing, however it ends', async () => {
    await using app = await startFeedApp();
    const listeners = () => app.app.server.listenerCount('upgrade');
    const before = listeners();
    const endings = [
      (client: Awaited<ReturnType<typeof connectSocket>>) => client.socket.close(),
      (client: Awaited<ReturnType<typeof connectSocket>>) => client.socket.terminate(),
      (client: Awaited<ReturnType<typeof connectSocket>>) => client.socket.send('no message'),
      (client: Awaited<ReturnType<typeof connectSocket>>) => {
        client.send({ type: 'complete', id: '1' });
        client.socket.close();
      },
    ];
    const visit = async () => {
      const clients = await Promise.all(endings.map(() => connectSocket(app.url)));
      for (const client of clients) {
        client.subscribe('1', SUBSCRIPTION);
        client.subscribe('2', SUBSCRIPTION);
      }
      await waitFor('the subscribers', () => app.feed.subscribers === 2 * clients.length);
      for (const [index, client] of clients.entries()) endings[index]?.(client);
      await Promise.all(clients.map(({ closed }) => closed));
      await waitFor('no subscriber', () => app.feed.subscribers === 0);
    };
    for (let round = 0; round < 50; round++) await visit();
    const heap = heapInUse();
    for (let round = 0; round < 150; round++) await visit();
    const grown = heapInUse() - heap;
    assert.ok(grown < 2e6, `${grown} bytes`);
    assert.equal(listeners(), before);
    const count = () =>
      new Promise<number>((resolve) => app.app.server.getConnections((_error, open) => resolve(open)));
    await waitFor('no connection', async () => (await count()) === 0);
  });

  test('a subscription that opens only after its client has left is closed', async () => {
    const opening = Promise.withResolvers<void>();
    let returned = 0;
    let asked = 0;
    const source = {
      next: () => new Promise<never>(() => {}),
      async return() {
        returned++;
        return { value: undefined, done: true };
      },
      [Symbol.asyncIterator]: () => source,
    };
    const schema = new GraphQLSchema({
      query: new GraphQLObjectType({ name: 'Query', fields: { a: { type: GraphQLString } } }),
      subscription: new GraphQLObjectType({
        name: 'Subscription',
        fields: {
          ticks: {
            type: GraphQLString,
            async subscribe() {
              asked++;
              await opening.promise;
              return source;
            },
          },
        },
      }),
    });
    await using app = await startFeedApp({ schema, maxSubscriptions: 2 });
    const left = await connectSocket(app.url);
    left.subscribe('1', 'subscription { ticks }');
    const cancelled = await connectSocket(app.url);
    cancelled.subscribe('1', 'subscription { ticks }');
    await waitFor('both', () => asked === 2);
    left.socket.terminate();
    cancelled.send({ type: 'complete', id: '1' });
    cancelled.send({ type: 'ping' });
    await cancelled.next();
    opening.resolve();
    await waitFor('the sources to be closed', () => returned === 2);
    // Their slots are free again.
    for (const id of ['2', '3']) cancelled.subscribe(id, 'subscription { ticks }');
    await waitFor('two more', () => asked === 4);
    assert.deepEqual(cancelled.messages, []);
    cancelled.socket.terminate();
  });
});

describe('slow readers', () => {
  test('one that leaves events waiting is cut, and the others stay', async () => {
    await using app = await startFeedApp();
    const slow = await connectSocket(app.url);
    const quick = await connectSocket(app.url);
    for (const { subscribe } of [slow, quick]) subscribe('1', SUBSCRIPTION);
    await waitFor('both', () => app.feed.subscribers === 2);
    slow.socket.pause();
    let published = 0;
    await waitFor('the cut', () => {
      published++;
      app.feed.publish({ id: String(published), name: LARGE, email: 'a@b' });
      return app.feed.subscribers === 1;
    });
    slow.socket.resume();
    assert.equal((await slow.closed).code, 1006);
    await waitFor('all events', () => quick.messages.length === published);
    quick.socket.terminate();
  });

  test('of one that reads no results no more is read, and all of them come once it reads', async () => {
    let asked = 0;
    const schema = new GraphQLSchema({
      query: new GraphQLObjectType({
        name: 'Query',
        fields: {
          large: {
            type: GraphQLString,
            resolve() {
              asked++;
              return LARGE;
            },
          },
        },
      }),
    });
    await using app = await startFeedApp({ schema, maxPerWebSocket: 1_000 });
    const client = await connectSocket(app.url);
    client.socket.pause();
    for (let id = 0; id < 500; id++) client.subscribe(String(id), '{ large }');
    let seen = -1;
    await waitFor('no more to be read', async () => {
      const before = seen;
      seen = asked;
      await new Promise((resolve) => setTimeout(resolve, 300));
      return asked > 0 && asked === before;
    });
    assert.ok(asked < 300, `${asked} operations ran`);
    client.socket.resume();
    await waitFor('all results', () => client.messages.length === 1_000);
    assert.equal(asked, 500);
    for (const { type, payload } of client.messages) {
      if (type === 'next') assert.equal(payload.data.large.length, LARGE.length);
    }
    client.socket.terminate();
  });

  test('large results that nobody reads have a bound over all connections', async () => {
    let asked = 0;
    const large = () => {
      asked++;
      return LARGE.repeat(100);
    };
    const schema = new GraphQLSchema({
      query: new GraphQLObjectType({
        name: 'Query',
        fields: { large: { type: GraphQLString, resolve: large } },
      }),
    });
    await using app = await startFeedApp({ schema });
    const sockets: Socket[] = [];
    app.app.server.on('connection', (socket) => sockets.push(socket));
    const clients = await Promise.all(Array.from({ length: 12 }, () => connectSocket(app.url)));
    for (const client of clients) {
      client.socket.pause();
      client.subscribe('1', '{ large }');
    }
    await waitFor('the resolvers', () => asked === clients.length);
    await turn();
    const waiting = sockets.reduce((sum, { writableLength }) => sum + writableLength, 0);
    assert.ok(waiting < 65 * 1024 * 1024, `${waiting} bytes wait`);
    const outcomes = clients.map(async (client) => {
      client.socket.resume();
      const answered = client.next().then(
        ({ payload }) => (payload.errors?.[0].extensions.code ?? 'whole') as string,
        () => 'cut',
      );
      return Promise.race([answered, client.closed.then(() => 'cut')]);
    });
    for (const outcome of await Promise.all(outcomes)) assert.match(outcome, /^(whole|BUSY|cut)$/);
    for (const { socket } of clients) socket.terminate();
  });
});

describe('keep-alive', () => {
  test('a client that answers no ping is cut, one that does stays', async () => {
    mock.timers.enable({ apis: ['setInterval'] });
    try {
      await using app = await startFeedApp();
      const dead = await connectSocket(app.url, { autoPong: false });
      const alive = await connectSocket(app.url);
      let pings = 0;
      for (const { socket } of [dead, alive]) socket.on('ping', () => pings++);
      for (let round = 1; round <= 3; round++) {
        mock.timers.tick(12_000);
        await waitFor('the pings', () => pings === (round === 1 ? 2 : round + 1));
        // The pong is on its way before this.
        alive.send({ type: 'ping' });
        await alive.next();
        if (round === 2) assert.equal((await dead.closed).code, 1006);
      }
      assert.equal(alive.socket.readyState, alive.socket.OPEN);
      alive.socket.terminate();
    } finally {
      mock.timers.reset();
    }
  });
});
