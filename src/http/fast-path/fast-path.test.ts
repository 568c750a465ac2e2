import assert from 'node:assert/strict';
import { channel } from 'node:diagnostics_channel';
import { connect } from 'node:net';
import { test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { LIMIT, openLaneDoor as open } from '../../../test/support/lane-door.ts';
import { rawHttp } from '../../../test/support/raw-http.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { warmUp } from '../../../test/support/warm-up.ts';

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
  const head = await door.ask('/things/a', { method: 'HEAD' });
  assert.equal(head.headers['content-length'], String('framework'.length));
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
  assert.equal((await door.ask('/echo', { method: 'POST', body: 'x'.repeat(LIMIT + 1) })).status, 413);
});

test('what is handed over has the reply of the framework, and the connection goes on', async () => {
  await using door = await open({ echo: (exchange) => exchange.handOver() });
  for (const body of ['abcd', 'efgh']) assert.equal(await door.post('/echo', body), `framework: ${body}`);
  assert.equal(await door.get('/things/a'), 'lane: a');
});

test("what is thrown, at once or later, is a problem in the door's format, logged with the id of its reply", async () => {
  await using door = await open({
    echo: () => {
      throw new TypeError('a bug');
    },
  });
  const failures: readonly (readonly [string, { method?: string; body?: string }, number, string, string])[] =
    [
      ['/things/thrown', {}, 503, 'STORE_UNAVAILABLE', 'no store'],
      ['/things/rejected', {}, 503, 'STORE_UNAVAILABLE', 'no store'],
      ['/echo', { method: 'POST', body: 'x' }, 500, 'INTERNAL', 'a bug'],
    ];
  for (const [path, init, status, code, message] of failures) {
    const reply = await door.ask(path, init);
    assert.equal(reply.status, status);
    assert.equal(reply.body, code);
    assert.equal(reply.headers['retry-after'], status === 503 ? '1' : undefined);
    const entry = door.log.entries.find(({ reqId }) => reqId === reply.headers['x-request-id']);
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
  assert.equal((await door.ask('/things/thrown')).status, 503);
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
  'somebody who sees all events of the server': ({ server }) => {
    const emit = server.emit;
    server.emit = function (this: typeof server, ...args: Parameters<typeof emit>) {
      return emit.apply(this, args);
    } as typeof emit;
  },
};
for (const [what, change] of Object.entries(closing)) {
  test(`${what} closes the lane`, async () => {
    await using door = await open({ change });
    assert.equal(await door.get('/things/a'), 'framework');
  });
}

for (const name of ['request.start', 'response.created', 'response.finish']) {
  test(`while somebody listens to Node's channel for ${name}, all requests go through the framework`, async () => {
    await using door = await open();
    const traces = channel(`http.server.${name}`);
    const traced = () => {};
    traces.subscribe(traced);
    assert.equal(await door.get('/things/a'), 'framework');
    traces.unsubscribe(traced);
    assert.equal(await door.get('/things/a'), 'lane: a');
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
  const reply = await door.ask('/things/a');
  assert.equal(reply.headers.connection, 'close');
  assert.equal(reply.body, 'framework');
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
    await warmUp(socket);
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
