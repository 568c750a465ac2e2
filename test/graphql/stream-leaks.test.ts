import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import fastify from 'fastify';
import { GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import { graphql } from '../../src/graphql/graphql.ts';
import { heapInUse } from '../support/collect-garbage.ts';
import { captureLog } from '../support/log-capture.ts';
import { within } from '../support/running-time.ts';
import { waitFor } from '../support/wait-for.ts';
import { rawSubscription } from './support/door.ts';
import { startFeedApp } from './support/plugin-app.ts';

const openFiles = () => readdirSync('/proc/self/fd').length;

/** The data of an event that holds about 100 kB. */
const LARGE = 'x'.repeat(100_000);

describe('streams whose readers leave', () => {
  test('10,000 that come and go leave nothing behind', async () => {
    await using server = await startFeedApp();
    const visit = async () => {
      const socket = await rawSubscription(server.url);
      socket.destroy();
    };
    const rounds = async (count: number) => {
      for (let done = 0; done < count; done += 50) await Promise.all(Array.from({ length: 50 }, visit));
      await waitFor('no subscriber', () => server.feed.subscribers === 0);
      const connections = () =>
        new Promise<number>((resolve) => server.app.server.getConnections((_error, count) => resolve(count)));
      await waitFor('no connection', async () => (await connections()) === 0);
    };
    await rounds(1_000);
    const files = openFiles();
    const heap = heapInUse();
    await rounds(9_000);
    assert.ok(openFiles() <= files + 5, `${openFiles()} open files after ${files}`);
    const grown = heapInUse() - heap;
    assert.ok(grown < 5e6, `${grown} bytes`);
  });

  test('one that leaves after an event', async () => {
    await using server = await startFeedApp();
    const socket = await rawSubscription(server.url);
    assert.equal(server.feed.subscribers, 1);
    server.feed.publish({ id: '1', name: 'a', email: 'e' });
    assert.match(String((await once(socket, 'data'))[0]), /"userCreated":\{"id":"1","name":"a"\}/);
    socket.destroy();
    await waitFor('no subscriber', () => server.feed.subscribers === 0);
    server.feed.publish({ id: '2', name: 'b', email: 'e' });
  });

  test('one that only closes its half', async () => {
    await using server = await startFeedApp();
    const socket = await rawSubscription(server.url);
    socket.end();
    await waitFor('no subscriber', () => server.feed.subscribers === 0);
    socket.destroy();
  });

  test('one that leaves in the middle of the request', async () => {
    await using server = await startFeedApp();
    const { hostname, port } = new URL(server.url);
    for (let count = 0; count < 50; count++) {
      const socket = connect({ host: hostname, port: Number(port) });
      socket.write(
        'POST /graphql HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\nContent-Length: 60\r\n\r\n{"query":',
      );
      await once(socket, 'connect');
      if (count % 2 === 0) socket.resetAndDestroy();
      else socket.destroy();
    }
    await turn();
    assert.equal(server.feed.subscribers, 0);
  });

  test('one that takes nothing is cut, and the others go on', async () => {
    await using server = await startFeedApp();
    const slow = await rawSubscription(server.url);
    slow.pause();
    slow.on('error', () => {});
    const quick = await rawSubscription(server.url);
    let events = 0;
    quick.on('data', (piece: Buffer) => {
      events += String(piece).match(/event: next/g)?.length ?? 0;
    });
    let published = 0;
    // What the system buffers for a connection is not known: some megabytes.
    while (server.feed.subscribers === 2 && published < 1_000) {
      server.feed.publish({ id: String(++published), name: LARGE, email: 'e' });
      await waitFor('the quick reader', () => events === published);
    }
    assert.equal(server.feed.subscribers, 1);
    server.feed.publish({ id: String(++published), name: 'after', email: 'e' });
    await waitFor('the quick reader', () => events === published);
    slow.destroy();
    quick.destroy();
    await waitFor('no subscriber', () => server.feed.subscribers === 0);
  });
});

/** An application with the door's plugin and subscriptions of the test's own. */
async function startWith(subscribe: () => unknown, log = captureLog(), slow = () => Promise.resolve('')) {
  const text = { type: GraphQLString };
  const schema = new GraphQLSchema({
    query: new GraphQLObjectType({
      name: 'Query',
      fields: {
        large: { ...text, resolve: () => LARGE.repeat(50) },
        slow: { ...text, resolve: slow },
      },
    }),
    subscription: new GraphQLObjectType({
      name: 'Subscription',
      fields: { ticks: { ...text, subscribe, resolve: (tick) => tick } },
    }),
  });
  const app = fastify({
    logger: { level: 'warn', stream: log.stream },
    childLoggerFactory: (logger) => logger,
  });
  app.register(graphql, { schema });
  const origin = await app.listen({ host: '127.0.0.1', port: 0 });
  const query = JSON.stringify({ query: 'subscription { ticks }' });
  const url = `${origin}/graphql`;
  const accept = { 'content-type': 'application/json', accept: 'text/event-stream', connection: 'close' };
  return {
    app,
    url,
    open: () => rawSubscription(url, query),
    fetch: (body = query) => fetch(url, { method: 'POST', headers: accept, body }),
    async [Symbol.asyncDispose]() {
      app.server.closeAllConnections();
      await app.close();
    },
  };
}

describe('sources of events', () => {
  test('one that opens only after its reader has left is closed', async () => {
    const opening = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    let returned = 0;
    const source = {
      next: () => new Promise(() => {}),
      async return() {
        returned++;
        return { value: undefined, done: true };
      },
      [Symbol.asyncIterator]: () => source,
    };
    await using server = await startWith(async () => {
      asked.resolve();
      await opening.promise;
      return source;
    });
    const { hostname, port } = new URL(server.url);
    const socket = connect({ host: hostname, port: Number(port) });
    const body = '{"query":"subscription { ticks }"}';
    socket.write(
      `POST /graphql HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    await asked.promise;
    socket.destroy();
    const connections = () =>
      new Promise<number>((resolve) => server.app.server.getConnections((_error, count) => resolve(count)));
    await waitFor('the reader to be gone', async () => (await connections()) === 0);
    opening.resolve();
    await waitFor('the source to be closed', () => returned > 0);
    assert.equal(returned, 1);
  });

  test('one that waits for ever does not hold a stop up', async () => {
    await using server = await startWith(async function* () {
      yield 'first';
      await new Promise(() => {});
    });
    const response = await server.fetch();
    const text = response.text();
    await turn();
    await within(4_000, () => server.app.close());
    assert.match(
      await text,
      /^(event: next\ndata: \{"data":\{"ticks":"first"\}\}\n\n)?event: complete\ndata: \n\n$/,
    );
  });

  test('one that opens only after a stop has begun does not hold it up', async () => {
    const opening = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    await using server = await startWith(async () => {
      asked.resolve();
      await opening.promise;
      return (async function* () {
        await new Promise(() => {});
        yield 'never';
      })();
    });
    const response = server.fetch();
    await asked.promise;
    const closing = server.app.close();
    await waitFor('the stop to begin', () => !server.app.server.listening);
    opening.resolve();
    assert.equal(await (await response).text(), 'event: complete\ndata: \n\n');
    await closing;
  });

  test('a query that ends only after a stop has begun has its result', async () => {
    const slow = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    await using server = await startWith(
      () => undefined,
      captureLog(),
      async () => {
        asked.resolve();
        await slow.promise;
        return 'here';
      },
    );
    const response = server.fetch('{"query":"{ slow }"}');
    await asked.promise;
    const closing = server.app.close();
    await waitFor('the stop to begin', () => !server.app.server.listening);
    slow.resolve();
    assert.equal(
      await (await response).text(),
      'event: next\ndata: {"data":{"slow":"here"}}\n\nevent: complete\ndata: \n\n',
    );
    await closing;
  });

  test('one that fails is logged and cuts its stream, so that nobody takes it for complete', async () => {
    const log = captureLog();
    await using server = await startWith(async function* () {
      yield 'first';
      throw new Error('the source broke');
    }, log);
    const response = await server.fetch();
    await assert.rejects(response.text());
    assert.deepEqual(
      log.entries.map(({ msg, reqId }) => ({ msg, reqId })),
      [{ msg: 'event stream cut', reqId: 'req-1' }],
    );
    assert.match(JSON.stringify(log.entries), /the source broke/);
  });

  test('one that ends completes its stream', async () => {
    await using server = await startWith(async function* () {
      yield 'first';
    });
    const text = await (await server.fetch()).text();
    assert.equal(text, 'event: next\ndata: {"data":{"ticks":"first"}}\n\nevent: complete\ndata: \n\n');
  });

  test('an event may be larger than what may wait', async () => {
    await using server = await startWith(async function* () {
      for (let count = 0; count < 3; count++) yield LARGE.repeat(20);
    });
    const large = await (await server.fetch('{"query":"{ large }"}')).text();
    assert.equal(
      large.length,
      'event: next\ndata: {"data":{"large":""}}\n\nevent: complete\ndata: \n\n'.length + 5_000_000,
    );
    assert.match(large, /event: complete/);
  });
});
