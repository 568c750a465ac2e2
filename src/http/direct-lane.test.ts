import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { captureLog } from '../../test/support/log-capture.ts';
import { rawHttp } from '../../test/support/raw-http.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { StoreUnavailableError } from '../database/errors.ts';
import { openLog } from '../observability/log.ts';
import type { DirectExchange } from './direct-exchange.ts';
import { receiveHandedOver } from './handed-over-body.ts';
import { createListener } from './listener.ts';
import { readRawBodies } from './read-bodies.ts';

const LIMIT = 20;

/** What the part of POST /echo in the lane does with a body. */
type Echo = (exchange: DirectExchange, body: Buffer) => void;

/**
 * A listener with GET /things/<param>, POST /echo and POST /slash/, each answered by the lane or by the framework, which
 * its body tells. `change` is what somebody adds after the wiring.
 */
async function open({
  change = () => {},
  echo = (exchange, body) => exchange.send(200, 'text/plain', `lane: ${body}`),
}: {
  change?: (app: FastifyInstance) => unknown;
  echo?: Echo;
} = {}) {
  const capture = captureLog();
  const listener = createListener({
    door: 'test',
    host: '127.0.0.1',
    port: 0,
    portHint: '--test-port',
    log: await openLog({ level: 'info', stream: capture.stream }),
    errors: { contentType: 'text/plain', body: ({ code }) => code },
  });
  const { app } = listener;
  const recorded: string[] = [];
  app.addHook('onRoute', (route) => {
    const record = (method: string, status: number) => void recorded.push(`${method} ${route.url} ${status}`);
    route.config = { ...route.config, record };
  });
  listener.watchHooks();
  app.register((room, _options, done) => {
    readRawBodies(room, { bodyLimit: LIMIT });
    receiveHandedOver(room);
    const byParam = (exchange: DirectExchange) => {
      if (exchange.param === 'thrown') throw new StoreUnavailableError('no store');
      if (exchange.param === 'unusual') return false;
      exchange.answer(
        exchange.param === 'rejected'
          ? Promise.reject(new StoreUnavailableError('no store'))
          : exchange.param,
        (param) => exchange.send(200, 'text/plain', `lane: ${param}`),
      );
      return true;
    };
    const byBody = (exchange: DirectExchange) => exchange.readBody(LIMIT, (body) => echo(exchange, body));
    room.get('/things/:param', { config: { direct: byParam } }, () => 'framework');
    room.post('/echo', { config: { direct: byBody } }, ({ body }) => `framework: ${body ?? ''}`);
    room.post('/slash/', { config: { direct: byBody } }, () => 'framework');
    done();
  });
  await change(app);
  const url = await listener.listen();
  return {
    url,
    app,
    listener,
    recorded,
    log: capture,
    get: async (path: string) => (await fetch(url + path)).text(),
    post: async (path: string, body: string) => (await fetch(url + path, { method: 'POST', body })).text(),
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
  };
}

test('a path is taken as it stands, or with one last segment that is not empty', async () => {
  await using door = await open();
  assert.equal(await door.get('/things/a%20b'), 'lane: a%20b');
  assert.equal(await door.post('/echo', 'x'), 'lane: x');
  for (const path of ['/things/', '/things/unusual', '/things', '/things/a/']) {
    assert.doesNotMatch(await door.get(path), /^lane/, path);
  }
  for (const path of ['/echo?a', '/echo/', '/slash/x', '/']) {
    assert.doesNotMatch(await door.post(path, 'x'), /^lane/, path);
  }
  const head = await fetch(`${door.url}/things/a`, { method: 'HEAD' });
  assert.equal(head.headers.get('content-length'), String('framework'.length));
});

test('replies are recorded with their method and status, once the client has them', async () => {
  await using door = await open();
  await door.get('/things/a');
  await door.get('/things/thrown');
  await door.post('/echo', 'x');
  assert.deepEqual(door.recorded, ['GET /things/:param 200', 'GET /things/:param 503', 'POST /echo 200']);
});

test("a body without a length, without a byte or beyond the limit is the framework's", async () => {
  await using door = await open();
  const chunked = 'POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n';
  assert.match((await rawHttp(door.url, [chunked])).text, /framework: x$/);
  assert.equal(await door.post('/echo', ''), 'framework: ');
  assert.equal(await door.post('/echo', 'x'.repeat(LIMIT)), `lane: ${'x'.repeat(LIMIT)}`);
  assert.equal(
    (await fetch(`${door.url}/echo`, { method: 'POST', body: 'x'.repeat(LIMIT + 1) })).status,
    413,
  );
});

test('the framework reads a body again that is handed over, and the connection goes on', async () => {
  await using door = await open({ echo: (exchange, body) => exchange.handOver(body) });
  const request = 'POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n';
  const { text } = await rawHttp(door.url, [request, 'a', 'bcd', request, 'efgh']);
  assert.deepEqual(text.match(/framework: \w{4}/g), ['framework: abcd', 'framework: efgh']);
});

test("what is thrown, at once or later, is a problem in the door's format, logged with the id of its reply", async () => {
  await using door = await open({
    echo: () => {
      throw new TypeError('a bug');
    },
  });
  const failures: readonly (readonly [string, RequestInit, number, string, string])[] = [
    ['/things/thrown', {}, 503, 'STORE_UNAVAILABLE', 'no store'],
    ['/things/rejected', {}, 503, 'STORE_UNAVAILABLE', 'no store'],
    ['/echo', { method: 'POST', body: 'x' }, 500, 'INTERNAL', 'a bug'],
  ];
  for (const [path, init, status, code, message] of failures) {
    const reply = await fetch(door.url + path, init);
    assert.equal(reply.status, status);
    assert.equal(await reply.text(), code);
    assert.equal(reply.headers.get('retry-after'), status === 503 ? '1' : null);
    const entry = door.log.entries.find(({ reqId }) => reqId === reply.headers.get('x-request-id'));
    assert.equal(entry?.msg, 'request failed');
    assert.match(JSON.stringify(entry), new RegExp(message));
  }
});

test('what is thrown behind a reply is logged, and harms nobody', async () => {
  await using door = await open({
    echo: (exchange) => {
      exchange.send(200, 'text/plain', 'sent');
      throw new TypeError('too late');
    },
  });
  assert.equal(await door.post('/echo', 'x'), 'sent');
  assert.equal(await door.post('/echo', 'x'), 'sent');
  assert.equal(door.log.entries.filter(({ msg }) => msg === 'request failed').length, 2);
});

test("the level of the door's own log holds for the lane", async () => {
  await using door = await open({ change: ({ log }) => Object.assign(log, { level: 'silent' }) });
  assert.equal((await fetch(`${door.url}/things/thrown`)).status, 503);
  assert.deepEqual(
    door.log.entries.filter(({ msg }) => msg === 'request failed'),
    [],
  );
});

const pass = (_request: unknown, _reply: unknown, done: () => void) => done();
const closing: Readonly<Record<string, (app: FastifyInstance) => unknown>> = {
  'a hook that sees requests': (app) => app.addHook('onRequest', pass),
  'a hook that sees replies': (app) => app.addHook('onResponse', pass),
  'a hook that may give routes hooks': (app) => app.addHook('onRoute', () => {}),
  'a hook that may give plugins hooks': (app) => app.addHook('onRegister', () => {}),
  'other request ids': (app) => app.setGenReqId(() => 'mine'),
  'a listener for requests': (app) => app.server.on('request', () => {}),
};
for (const [what, change] of Object.entries(closing)) {
  test(`${what} closes the lane`, async () => {
    await using door = await open({ change });
    assert.equal(await door.get('/things/a'), 'framework');
  });
}

test('hooks of the start and the stop, and of other plugins, leave it open', async () => {
  await using door = await open({
    change: (app) =>
      app
        .addHook('onReady', (done) => done())
        .addHook('onClose', (_app, done) => done())
        .register((other, _options, done) => {
          other.addHook('onRequest', pass);
          done();
        }),
  });
  assert.equal(await door.get('/things/a'), 'lane: a');
});

test('a route whose path says more takes the path out of the lane, and no other', async () => {
  await using door = await open({
    change: (app) => app.get('/things/mine', () => 'mine').get('/things/mine/more', () => 'more'),
  });
  assert.equal(await door.get('/things/mine'), 'mine');
  assert.equal(await door.post('/echo', 'x'), 'lane: x');
});

test('a drain ends the lane', async () => {
  await using door = await open();
  door.listener.drain();
  const reply = await fetch(`${door.url}/things/a`);
  assert.equal(reply.headers.get('connection'), 'close');
  assert.equal(await reply.text(), 'framework');
});

test('clients that go away in the middle of a body, or before the reply, leave nothing behind', async () => {
  const waiting: (() => void)[] = [];
  let closed = 0;
  await using door = await open({
    echo: (exchange) => {
      exchange.once('close', () => closed++);
      exchange.answer(new Promise<string>((resolve) => waiting.push(() => resolve('late'))), (text) =>
        exchange.send(200, 'text/plain', text),
      );
    },
  });
  const port = Number(new URL(door.url).port);
  for (let i = 0; i < 20; i++) {
    const socket = connect(port, '127.0.0.1');
    socket.write(`POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n${i % 2 === 0 ? 'ab' : 'abcd'}`);
    const before = waiting.length;
    if (i % 2 === 1) await waitFor('the body to be there', () => waiting.length > before);
    socket.resetAndDestroy();
  }
  await waitFor('the exchanges to be closed', () => closed === 10);
  for (const answer of waiting) answer();
  assert.equal(await door.get('/things/a'), 'lane: a');
  assert.deepEqual(door.recorded, ['GET /things/:param 200'], 'nobody had the others');
});
