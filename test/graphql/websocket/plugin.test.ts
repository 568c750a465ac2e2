import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import fastify, { type FastifyInstance } from 'fastify';
import { GraphQLError, GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import { WebSocketServer } from 'ws';
import { graphql } from '../../../src/graphql/graphql.ts';
import { rawHttp } from '../../support/connections.ts';
import { waitFor } from '../../support/wait-for.ts';
import { connectSocket, openSocket, type SocketClient } from '../support/socket-client.ts';

const schema = new GraphQLSchema({
  query: new GraphQLObjectType({
    name: 'Query',
    fields: { who: { type: GraphQLString, resolve: (_root, _args, context) => String(context) } },
  }),
});

interface App extends AsyncDisposable {
  readonly app: FastifyInstance;
  readonly url: string;
}

async function start(build: (app: FastifyInstance) => void, host = '127.0.0.1'): Promise<App> {
  const app = fastify();
  app.get('/plain', (_request, reply) => reply.send('plain'));
  app.post('/echo', (request, reply) => reply.send(request.body));
  build(app);
  const url = await app.listen({ host, port: 0 });
  return { app, url, [Symbol.asyncDispose]: () => app.close() };
}

async function answerOf(client: SocketClient): Promise<unknown> {
  client.subscribe('1', '{ who }');
  const { payload } = await client.next();
  await client.next();
  return payload.data?.who ?? payload.errors[0].message;
}

describe('the plugin in an application', () => {
  test('hooks see a WebSocket as a request, and may refuse it', async () => {
    await using started = await start((app) => {
      app.register(async (scope) => {
        scope.addHook('onRequest', async (request, reply) => {
          if (request.headers.authorization !== 'Bearer x') return reply.code(401).send('Who are you?');
        });
        scope.register(graphql, { schema });
      });
    });
    const url = `${started.url}/graphql`;
    await assert.rejects(openSocket(url), /401/);
    const client = await connectSocket(url, { headers: { authorization: 'Bearer x' } });
    assert.equal(await answerOf(client), 'undefined');
    client.socket.terminate();
  });

  test('a context is made of the request and of what connection_init brought, for each operation', async () => {
    let made = 0;
    await using started = await start((app) => {
      app.register(graphql, {
        schema,
        context({ headers }, { connectionParams }) {
          made++;
          if (connectionParams?.token === 'wrong') throw new GraphQLError('Not you');
          if (connectionParams?.token === 'broken') throw new Error('secret');
          return `${headers['x-reader']} ${connectionParams?.token}`;
        },
      });
    });
    const answer = async (token: string) => {
      const client = await openSocket(`${started.url}/graphql`, { headers: { 'x-reader': 'Ada' } });
      client.send({ type: 'connection_init', payload: { token } });
      await client.next();
      const found = [await answerOf(client), await answerOf(client)];
      client.socket.terminate();
      return found;
    };
    assert.deepEqual(await answer('x'), ['Ada x', 'Ada x']);
    assert.deepEqual(await answer('wrong'), ['Not you', 'Not you']);
    assert.deepEqual(await answer('broken'), ['Internal Server Error', 'Internal Server Error']);
    assert.equal(made, 6);
  });

  test('works below a prefix, with parameters too, and twice in one application', async () => {
    await using started = await start((app) => {
      app.register(graphql, {
        schema,
        prefix: '/api/:tenant',
        context: ({ params }) => JSON.stringify(params),
      });
      app.register(graphql, { schema, path: '/other', context: () => 'other' });
    });
    for (const [path, context] of [
      ['/api/acme/graphql', '{"tenant":"acme"}'],
      ['/other', 'other'],
    ]) {
      const client = await connectSocket(`${started.url}${path}`);
      assert.equal(await answerOf(client), context);
      client.socket.terminate();
    }
    assert.equal(started.app.server.listenerCount('upgrade'), 1);
  });

  test('leaves the WebSockets of other paths to the listeners of others', async () => {
    const others = new WebSocketServer({ noServer: true });
    await using started = await start((app) => {
      app.register(graphql, { schema });
      app.server.on('upgrade', (request, socket, head) => {
        if (request.url === '/chat') {
          others.handleUpgrade(request, socket, head, (client) => client.send('{"type":"chat"}'));
        }
      });
    });
    const chat = await openSocket(`${started.url}/chat`);
    assert.equal((await chat.next()).type, 'chat');
    const client = await connectSocket(`${started.url}/graphql`);
    assert.equal(await answerOf(client), 'undefined');
    chat.socket.terminate();
    client.socket.terminate();
  });

  test('alone, answers other upgrades as if nobody had asked for one', async () => {
    await using started = await start((app) => app.register(graphql, { schema }));
    const lines = 'Host: x\r\nConnection: Upgrade\r\n';
    const asked = {
      plain: `GET /plain HTTP/1.1\r\n${lines}Upgrade: h2c\r\n\r\n`,
      'a body': `POST /echo HTTP/1.1\r\n${lines}Upgrade: h2c\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\na body`,
      NO_ROUTE: `GET /none HTTP/1.1\r\n${lines}Upgrade: websocket\r\n\r\n`,
    };
    for (const [answer, bytes] of Object.entries(asked)) {
      const { text } = await rawHttp(started.url, [bytes], { silence: 2_000 });
      assert.match(text, /\r\nConnection: close\r\n/);
      assert.ok(text.includes(answer), text);
    }
    const body = 'a body';
    const slowly = await rawHttp(started.url, [
      `POST /echo HTTP/1.1\r\n${lines}Upgrade: h2c\r\nContent-Type: text/plain\r\nContent-Length: 12\r\n\r\n${body}`,
      body,
    ]);
    assert.ok(slowly.text.endsWith(body + body), slowly.text);
  });

  test('listens on all addresses of localhost', async () => {
    await using started = await start((app) => app.register(graphql, { schema }), 'localhost');
    const { port } = new URL(started.url);
    for (const { address, family } of started.app.addresses() as readonly AddressInfo[]) {
      const host = family === 'IPv6' ? `[${address}]` : address;
      const client = await connectSocket(`http://${host}:${port}/graphql`);
      assert.equal(await answerOf(client), 'undefined');
      client.socket.terminate();
    }
  });

  test('a close of the application closes WebSockets and takes the listener away', async () => {
    const started = await start((app) => app.register(graphql, { schema }));
    const client = await connectSocket(`${started.url}/graphql`);
    assert.equal(started.app.server.listenerCount('upgrade'), 1);
    await started.app.close();
    assert.equal((await client.closed).code, 1001);
    assert.equal(started.app.server.listenerCount('upgrade'), 0);
  });

  test('a WebSocket behind a reply that is not sent yet is cut', async () => {
    const slow = Promise.withResolvers<string>();
    await using started = await start((app) => {
      app.get('/slow', () => slow.promise);
      app.register(graphql, { schema });
    });
    const handshake =
      'GET /graphql HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n';
    const { text } = await rawHttp(started.url, [`GET /slow HTTP/1.1\r\nHost: x\r\n\r\n${handshake}`]);
    assert.equal(text, '');
    slow.resolve('late');
    await waitFor('the application to go on', async () => (await fetch(`${started.url}/plain`)).ok);
  });
});

test('a run ends when its WebSocket does, and with it the signals of its resolvers', async () => {
  const aborted = { context: false, resolver: false };
  const asked = Promise.withResolvers<void>();
  const waiting = new GraphQLSchema({
    query: new GraphQLObjectType({
      name: 'Query',
      fields: {
        forever: {
          type: GraphQLString,
          resolve(_source, _given, _context, info) {
            info.getAbortSignal()?.addEventListener('abort', () => {
              aborted.resolver = true;
            });
            asked.resolve();
            return new Promise(() => {});
          },
        },
      },
    }),
  });
  await using started = await start((app) => {
    app.register(graphql, {
      schema: waiting,
      context(_request, { abortSignal }) {
        abortSignal.addEventListener('abort', () => {
          aborted.context = true;
        });
      },
    });
  });
  const client = await connectSocket(`${started.url}/graphql`);
  client.send({ id: '1', type: 'subscribe', payload: { query: '{ forever }' } });
  await asked.promise;
  client.socket.terminate();
  await waitFor('both signals', () => aborted.context && aborted.resolver);
});
