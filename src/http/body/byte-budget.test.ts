import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { setImmediate as tick } from 'node:timers/promises';
import fastify from 'fastify';
import { rawHttp } from '../../../test/support/raw-http.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { addEndpoint } from '../add-endpoint.ts';
import type { Endpoint } from '../endpoint.ts';
import { sendProblem } from '../error-format.ts';
import { ByteBudget } from './byte-budget.ts';
import { readRawBodies } from './read-bodies.ts';

const LIMIT = 60;
const BUDGET = 100;

async function listen() {
  const app = fastify();
  const budget = new ByteBudget(BUDGET);
  const errors = { contentType: 'text/plain', body: ({ code }: { readonly code: string }) => code };
  app.setErrorHandler((error, request, reply) => sendProblem(errors, error, request, reply));
  readRawBodies(app);
  const taking = (handle: Endpoint['handle']): Endpoint => ({
    bodyLimit: LIMIT,
    admit: (exchange, bodyLength) => budget.take(bodyLength, exchange),
    handle,
  });
  const reply = (body: string) => ({ status: 200, type: 'text/plain', body });
  let seen = 0;
  let release = Promise.withResolvers<void>();
  let hold = Promise.resolve();
  app.addHook('onRequest', async () => {
    seen++;
    await hold;
  });
  addEndpoint(
    app,
    'POST',
    '/',
    taking(() => reply('at once')),
  );
  addEndpoint(
    app,
    'POST',
    '/wait',
    taking(() => release.promise.then(() => reply('done'))),
  );
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  const sockets: Socket[] = [];
  /** Begins a request and sends so much of its body as is given. */
  const begin = async (path: string, framing: string, body = '') => {
    const before = seen;
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    sockets.push(socket);
    let reply = '';
    socket.setEncoding('utf8').on('data', (text: string) => {
      reply += text;
    });
    socket.on('error', () => {});
    socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\n${framing}\r\n\r\n${body}`);
    await waitFor('the request to be seen', () => seen > before);
    return { socket, reply: () => reply };
  };
  const send = (bytes: number, path = '/') =>
    fetch(url + path, { method: 'POST', body: new Uint8Array(bytes), headers: { connection: 'close' } });
  return {
    url,
    begin,
    send,
    status: async (bytes: number) => (await send(bytes)).status,
    release() {
      release.resolve();
      release = Promise.withResolvers();
    },
    connections: () =>
      new Promise<number>((resolve) => app.server.getConnections((_error, count) => resolve(count))),
    /** Makes the hook before the endpoints wait for a promise. */
    holdRequests(until: Promise<void>) {
      hold = until;
    },
    async [Symbol.asyncDispose]() {
      release.resolve();
      for (const socket of sockets) socket.destroy();
      await app.close();
    },
  };
}

test('what does not fit beside the bodies under way is a 503 that asks to come again, before its body is read', async () => {
  await using door = await listen();
  await door.begin('/', 'Content-Length: 60', 'x');
  assert.equal(await door.status(40), 200, 'what fits is taken');
  const head = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 41\r\n\r\n';
  const { text, status } = await rawHttp(door.url, [head]);
  assert.equal(status, 503);
  assert.match(text, /\r\nretry-after: 1\r\n/);
  assert.match(text, /\r\nconnection: close\r\n/);
});

test('the bytes are free again when the reply has gone', async () => {
  await using door = await listen();
  const first = door.send(60, '/wait');
  await waitFor('them to be taken', async () => (await door.status(50)) === 503);
  door.release();
  assert.equal((await first).status, 200);
  await waitFor('them to be free', async () => (await door.status(50)) === 200);
});

test('the bytes are free again when the client goes away, in the body or while it waits', async () => {
  await using door = await listen();
  for (const [path, body] of [
    ['/', 'x'],
    ['/wait', 'x'.repeat(60)],
  ] as const) {
    const { socket } = await door.begin(path, 'Content-Length: 60', body);
    await waitFor('them to be taken', async () => (await door.status(50)) === 503);
    socket.destroy();
    await waitFor('them to be free', async () => (await door.status(50)) === 200);
  }
});

test('a client that goes away while a hook before the endpoint waits holds no bytes', async () => {
  await using door = await listen();
  const held = Promise.withResolvers<void>();
  door.holdRequests(held.promise);
  const { socket } = await door.begin('/', 'Content-Length: 60', 'x');
  const gone = once(socket, 'close');
  socket.resetAndDestroy();
  await gone;
  await waitFor('the connection to be closed', async () => (await door.connections()) === 0);
  door.holdRequests(Promise.resolve());
  held.resolve();
  await held.promise;
  await tick();
  assert.equal(await door.status(60), 200);
});

test('a length that nobody can take counts no more than the limit, and one that is not given as much as that', async () => {
  await using door = await listen();
  const { socket } = await door.begin('/', 'Transfer-Encoding: chunked', '1\r\nx\r\n');
  assert.equal(await door.status(40), 200);
  assert.equal(await door.status(41), 503);
  socket.destroy();
  await waitFor('them to be free', async () => (await door.status(50)) === 200);
  assert.equal(await door.status(1_000), 413);
});

test('a body that grows beyond the limit is a 413 while it still comes', async () => {
  await using door = await listen();
  const { socket, reply } = await door.begin('/', 'Transfer-Encoding: chunked', '28\r\n');
  socket.write('x'.repeat(40));
  socket.write('\r\n28\r\n');
  socket.write('x'.repeat(40));
  // The end of the body never comes.
  await waitFor('the refusal', () => reply().startsWith('HTTP/1.1 413 '));
  if (!socket.closed) await once(socket, 'close');
  await waitFor('the bytes to be free', async () => (await door.status(60)) === 200);
});
