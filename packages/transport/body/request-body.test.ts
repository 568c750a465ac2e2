import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { createGunzip, gzipSync } from 'node:zlib';
import fastify from 'fastify';
import { rawHttp } from '../../../test/support/connections.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import type { Endpoint } from '../endpoint.ts';
import { addEndpoint, readRawBodies, sendProblem } from '../fastify.ts';
import { BodyBudget } from './body-budget.ts';

const LIMIT = 60;
const BUDGET = 100;

/** An application of somebody else's, whose endpoints have a budget of their own. */
async function listen() {
  const app = fastify();
  const budget = new BodyBudget({ max: BUDGET });
  const errors = { contentType: 'text/plain', body: ({ code }: { readonly code: string }) => code };
  app.setErrorHandler((error, request, reply) => sendProblem(errors, error, request, reply));
  app.addHook('preParsing', (request, _reply, payload, done) => {
    if (request.headers['content-encoding'] !== 'gzip') return done(null, payload);
    const decoded = payload.pipe(createGunzip());
    // Fastify asks for it, to compare it with Content-Length.
    Object.defineProperty(decoded, 'receivedEncodedLength', { get: () => decoded.bytesWritten });
    done(null, decoded);
  });
  readRawBodies(app, budget);
  app.setNotFoundHandler((request, reply) => reply.code(404).send(String(request.body)));
  const reply = (body: string) => ({ status: 200, type: 'text/plain', body });
  let release = Promise.withResolvers<void>();
  const endpoint = (handle: Endpoint['handle']): Endpoint => ({ bodyLimit: LIMIT, handle });
  const echo = endpoint(({ body }) => reply(body.toString()));
  const wait = endpoint(({ body }) => release.promise.then(() => reply(body.toString())));
  addEndpoint(app, 'POST', '/', echo);
  addEndpoint(app, 'POST', '/wait', wait);
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  const sockets: Socket[] = [];
  return {
    app,
    url,
    budget,
    /** Begins a request and sends so much of its body as is given. */
    begin(path: string, framing: string, body = '') {
      const socket = connect(Number(new URL(url).port), '127.0.0.1');
      sockets.push(socket);
      let reply = '';
      socket.setEncoding('utf8').on('data', (text: string) => {
        reply += text;
      });
      socket.on('error', () => {});
      socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\n${framing}\r\n\r\n${body}`);
      return { socket, reply: () => reply };
    },
    async status(bytes: number) {
      const body = new Uint8Array(bytes);
      return (await fetch(url, { method: 'POST', body, headers: { connection: 'close' } })).status;
    },
    held: (bytes: number) => waitFor(`${bytes} bytes to be held`, () => budget.held === bytes),
    release() {
      release.resolve();
      release = Promise.withResolvers();
    },
    async [Symbol.asyncDispose]() {
      release.resolve();
      for (const socket of sockets) socket.destroy();
      await app.close();
    },
  };
}

const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;

test('a body counts as it comes, whatever length it announces', async () => {
  await using door = await listen();
  const { socket, reply } = door.begin('/', 'Content-Length: 60', 'x');
  await door.held(1);
  socket.write('yz');
  await waitFor('the rest to be held', () => door.budget.held >= 3);
  assert.ok(door.budget.held <= 6);
  assert.equal(await door.status(60), 200);
  socket.write('.'.repeat(57));
  await waitFor('the reply', () => reply().endsWith(`xyz${'.'.repeat(57)}`));
  socket.destroy();
  await door.held(0);
});

test('however a body is cut, it is one buffer of its bytes', async () => {
  await using door = await listen();
  const text = Array.from({ length: LIMIT }, (_, i) => String.fromCharCode(33 + i)).join('');
  const framed = [...text].map(chunk).join('');
  const { text: reply } = await rawHttp(door.url, [
    `POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n${framed}0\r\n\r\n`,
  ]);
  assert.ok(reply.endsWith(text));
});

test('what does not fit beside the bodies under way is a 503 that asks to come again', async () => {
  await using door = await listen();
  door.begin('/wait', 'Content-Length: 60', 'x'.repeat(60));
  await door.held(60);
  const head = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n';
  const { text, status } = await rawHttp(door.url, [head + 'x'.repeat(50)]);
  assert.equal(status, 503);
  assert.match(text, /\r\nretry-after: 1\r\n/);
  assert.match(text, /\r\nconnection: close\r\n/);
  assert.equal(await door.status(40), 200);
});

test('a body that grows too large for the others is a 503 while it still comes', async () => {
  await using door = await listen();
  door.begin('/wait', 'Content-Length: 60', 'x'.repeat(60));
  await door.held(60);
  const { socket, reply } = door.begin('/', 'Transfer-Encoding: chunked', chunk('x'.repeat(30)));
  await door.held(90);
  socket.write(chunk('x'.repeat(20)));
  await waitFor('the refusal', () => reply().startsWith('HTTP/1.1 503 '));
  if (!socket.closed) await once(socket, 'close');
  await door.held(60);
});

test('a body that has to make room is a 408, and its connection is closed', async () => {
  await using door = await listen();
  const { socket, reply } = door.begin('/', 'Content-Length: 60', 'x'.repeat(59));
  await door.held(59);
  await waitFor('it to be slow enough', async () => (await door.status(50)) === 200);
  await waitFor('the refusal', () => reply().startsWith('HTTP/1.1 408 '));
  assert.match(reply(), /\r\nx-error-code: TOO_SLOW\r\n/);
  if (!socket.closed) await once(socket, 'close');
});

test('the bytes are free again when the reply has gone', async () => {
  await using door = await listen();
  const { socket } = door.begin('/wait', 'Content-Length: 60', 'x'.repeat(60));
  await door.held(60);
  door.release();
  await door.held(0);
  socket.destroy();
});

test('when the client goes away, they are free as soon as nobody works on them', async () => {
  await using door = await listen();
  const begun = door.begin('/', 'Content-Length: 60', 'x');
  await door.held(1);
  begun.socket.destroy();
  await door.held(0);
  const waiting = door.begin('/wait', 'Content-Length: 60', 'x'.repeat(60));
  await door.held(60);
  const connections = () =>
    new Promise((resolve) => door.app.server.getConnections((_error, count) => resolve(count)));
  waiting.socket.destroy();
  await waitFor('the connection to be closed', async () => (await connections()) === 0);
  assert.equal(door.budget.held, 60, 'the endpoint has the body still');
  door.release();
  await door.held(0);
});

test('a body beyond the limit of its route is a 413, before it is read or while it comes', async () => {
  await using door = await listen();
  assert.equal(await door.status(61), 413);
  const { socket, reply } = door.begin('/', 'Transfer-Encoding: chunked', chunk('x'.repeat(40)));
  await waitFor('the bytes to be held', () => door.budget.held >= 40);
  socket.write(chunk('x'.repeat(40)));
  // The end of the body never comes.
  await waitFor('the refusal', () => reply().startsWith('HTTP/1.1 413 '));
  if (!socket.closed) await once(socket, 'close');
  await door.held(0);
});

test('a body that an application decodes is bounded and counted as it is decoded', async () => {
  await using door = await listen();
  const send = async (body: Buffer) =>
    fetch(door.url, {
      method: 'POST',
      body: new Uint8Array(body),
      headers: { 'content-encoding': 'gzip', connection: 'close' },
    });
  assert.equal(await (await send(gzipSync('a'.repeat(60)))).text(), 'a'.repeat(60));
  assert.equal((await send(gzipSync('a'.repeat(10_000)))).status, 413);
  assert.equal((await send(Buffer.from('no gzip'))).status, 400);
  await door.held(0);
});

test('what is no endpoint answers without the body', async () => {
  await using door = await listen();
  const { reply } = door.begin('/nowhere', 'Content-Length: 1000', 'x');
  await waitFor('the reply', () => reply().startsWith('HTTP/1.1 404 ') && reply().endsWith('undefined'));
});
