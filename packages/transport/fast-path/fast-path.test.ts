import assert from 'node:assert/strict';
import { channel } from 'node:diagnostics_channel';
import { connect } from 'node:net';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import fc from 'fast-check';
import type { FastifyInstance } from 'fastify';
import { StoreUnavailableError } from '../../../src/core/errors.ts';
import { rawHttp, warmUp } from '../../../test/support/connections.ts';
import { LIMIT, openFastDoor as open, told } from '../../../test/support/fast-door.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import type { Endpoint } from '../endpoint.ts';
import { addEndpoint } from '../fastify.ts';
import { SOURCE_FAILED } from '../reply/reply-streams.ts';

test('a path is taken as it stands, or with one last segment that is not empty and needs no decoding', async () => {
  await using door = await open();
  assert.equal(await door.get('/things/a'), 'fast: a');
  assert.equal(await door.post('/echo', 'x'), 'fast: x');
  for (const path of [
    '/things/',
    '/things',
    '/things/a/',
    '/things/a%20b',
    '/things/a?b',
    '/things/a%20b?c=d',
  ]) {
    assert.doesNotMatch(await door.get(path), /^fast:/, path);
  }
  for (const path of ['/echo?a', '/echo/', '/slash/x', '/']) {
    assert.doesNotMatch(await door.post(path, 'x'), /^fast:/, path);
  }
  const head = await door.ask('/things/a', { method: 'HEAD' });
  assert.equal(head.headers['content-length'], String('fastify: a'.length));
});

test('plain queries are read as Fastify reads them, and others are left to it', async () => {
  await using doors = await openBoth();
  const [fast, fastify] = doors;
  for (const each of ['a=b', 'where=%7B%22a%22%3A1%7D', 'title%3Aprefix=%C3%89+x&cursor=Ab-_9']) {
    assert.match(await fast.get(`/things/a?${each}`), /^fast: \[/, each);
  }
  const part = fc.stringMatching(/^[\w.:,~*+!'()$@{}[\]"&=;?/%-]{0,12}$/);
  const query = fc.oneof(part, fc.array(fc.tuple(part, part), { maxLength: 5 }).map(queryOf));
  const known = [
    'a=b',
    'a=&a=b&a=c',
    'a=%C3%A4+b',
    'a=%C3',
    'a=%ff',
    'a==',
    '__proto__=x',
    'a=1;b=2',
    '=a',
    'a=b#c',
  ];
  for (const each of [...known, ...fc.sample(query, 300)]) {
    const read = await fast.get(`/things/a?${each}`);
    const expected = await fastify.get(`/things/a?${each}`);
    assert.equal(read.replace(/^fast:/, 'fastify:'), expected, each);
  }
});

const queryOf = (pairs: [string, string][]) =>
  pairs.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join('&');

async function openBoth() {
  await using opened = new AsyncDisposableStack();
  const doors = [opened.use(await open()), opened.use(await open({ fastPath: false }))] as const;
  const all = opened.move();
  return Object.assign(doors, { [Symbol.asyncDispose]: () => all.disposeAsync() });
}

test('replies are recorded with their method and status, once the client has them', async () => {
  await using door = await open();
  await door.get('/things/a');
  await door.get('/things/thrown');
  await door.post('/echo', 'x');
  assert.deepEqual(door.recorded, ['GET /things/:param 200', 'GET /things/:param 503', 'POST /echo 200']);
});

test("a body without a length is Fastify's, and one beyond the limit is refused", async () => {
  await using door = await open();
  const chunked = 'POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n';
  assert.match((await rawHttp(door.url, [chunked])).text, /fastify: x$/);
  assert.equal(await door.post('/echo', ''), 'fast: ');
  assert.equal(await door.post('/echo', 'x'.repeat(LIMIT)), `fast: ${'x'.repeat(LIMIT)}`);
  const refused = await door.ask('/echo', { method: 'POST', body: 'x'.repeat(LIMIT + 1) });
  assert.equal(refused.status, 413);
  assert.equal(refused.headers.connection, 'close');
});

test('a reply in pieces runs its endpoint once, and the connection goes on', async () => {
  let [begun, closed] = [0, 0];
  await using door = await open({
    async *echo(ctx) {
      begun++;
      ctx.onClose(() => closed++);
      yield told(ctx, '');
      yield* ctx.body.toString();
    },
  });
  for (const body of ['abcd', 'efgh']) assert.equal(await door.post('/echo', body), `fast: ${body}`);
  await waitFor('all to be closed', () => closed === 2);
  assert.equal(begun, 2);
  assert.equal(await door.get('/things/a'), 'fast: a');
});

test('a reply in pieces whose source fails is refused before its first piece, and cut behind it', async () => {
  for (const fastPath of [true, false]) {
    await using door = await open({
      fastPath,
      async *echo({ body }) {
        if (String(body) === 'late') yield 'begun';
        throw new StoreUnavailableError('no store');
      },
    });
    const early = await door.ask('/echo', { method: 'POST', body: 'early' });
    assert.deepEqual([early.status, early.body], [503, 'STORE_UNAVAILABLE']);
    await assert.rejects(door.ask('/echo', { method: 'POST', body: 'late' }));
    const failures = door.log.entries.filter(({ msg }) => msg === SOURCE_FAILED);
    assert.equal(failures.length, 1);
    assert.match(String(Object(failures[0]?.err).message), /no store/);
  }
});

test('a stream for a client that is gone closes its request once', async () => {
  let closed = 0;
  const stream = Promise.withResolvers<Readable>();
  let asked = false;
  await using door = await open({
    echo(ctx) {
      asked = true;
      ctx.onClose(() => closed++);
      return stream.promise;
    },
  });
  const client = connect(Number(new URL(door.url).port), '127.0.0.1');
  await warmUp(client);
  client.write('POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx');
  await waitFor('the request', () => asked);
  client.resetAndDestroy();
  await waitFor('the request to be closed', () => closed === 1);
  stream.resolve(Readable.from(['late']));
  assert.equal(await door.get('/things/a'), 'fast: a');
  assert.equal(closed, 1);
});

test("a request that takes an event stream is Fastify's", async () => {
  await using door = await open();
  const headers = { accept: 'text/event-stream' };
  assert.equal((await door.ask('/things/a', { headers })).body, 'fastify: a');
  assert.equal(await door.get('/things/a'), 'fast: a');
});

test('bytes and replies without content are written as Fastify writes them', async () => {
  const replies = [];
  for (const fastPath of [true, false]) {
    await using door = await open({ fastPath, echo: ({ body }) => Buffer.concat([body, Buffer.of(0xff)]) });
    const client = connect(Number(new URL(door.url).port), '127.0.0.1');
    await warmUp(client);
    let text = '';
    client.on('data', (piece: Buffer) => {
      text += piece.toString('latin1');
    });
    client.write('POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab');
    await waitFor('the bytes', () => text.endsWith('ab\xff'));
    client.write('GET /things/none HTTP/1.1\r\nHost: x\r\n\r\n');
    await waitFor('the second head', () => text.split('\r\n\r\n').length === 3);
    client.destroy();
    replies.push(text.replace(/(?<=x-request-id: )\S+/g, 'ID').replace(/(?<=Date: )[^\r]+/g, 'DATE'));
  }
  assert.equal(replies[0], replies[1]);
});

test("what is thrown, at once or later, is a problem in the door's format, logged with the id of its reply", async () => {
  await using door = await open({
    echo: ({ body }) => {
      throw body.toString() === 'x' ? new TypeError('a bug') : Object.freeze(new TypeError('a frozen bug'));
    },
  });
  const failures: readonly (readonly [string, { method?: string; body?: string }, number, string, string])[] =
    [
      ['/things/thrown', {}, 503, 'STORE_UNAVAILABLE', 'no store'],
      ['/things/rejected', {}, 503, 'STORE_UNAVAILABLE', 'no store'],
      ['/echo', { method: 'POST', body: 'x' }, 500, 'INTERNAL', 'a bug'],
      ['/echo', { method: 'POST', body: 'frozen' }, 500, 'INTERNAL', 'a frozen bug'],
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

test("the level of the door's own log holds for the fast path", async () => {
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
  'another error handler': (app) => app.setErrorHandler((_error, _request, reply) => reply.send('mine')),
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
  test(`${what} closes the fast path`, async () => {
    await using door = await open({ change });
    assert.equal(await door.get('/things/a'), 'fastify: a');
  });
}

for (const name of [
  'http.server.request.start',
  'http.server.response.created',
  'http.server.response.finish',
  'tracing:fastify.request.handler:start',
  'tracing:fastify.request.handler:error',
]) {
  test(`while somebody listens to the channel ${name}, all requests go through Fastify`, async () => {
    await using door = await open();
    const traces = channel(name);
    const traced = () => {};
    traces.subscribe(traced);
    assert.equal(await door.get('/things/a'), 'fastify: a');
    traces.unsubscribe(traced);
    assert.equal(await door.get('/things/a'), 'fast: a');
  });
}

test('routes, hooks of the start and the stop, and what other plugins have, leave it open', async () => {
  await using door = await open({
    change: (app) =>
      app
        .addHook('onReady', (done) => done())
        .addHook('onClose', (_app, done) => done())
        .get('/mine', () => 'mine')
        .register((other, _options, done) => {
          other.addHook('onRequest', pass);
          other.setErrorHandler((_error, _request, reply) => reply.send('mine'));
          done();
        }),
  });
  assert.equal(await door.get('/things/a'), 'fast: a');
});

test('a hook of a plugin closes the fast path for the routes of that plugin, and of those inside it', async () => {
  const hello: Endpoint = {
    bodyLimit: 0,
    handle: (ctx) => ({ status: 200, type: 'text/plain', body: told(ctx, 'hello') }),
  };
  await using door = await open({
    change: (app) =>
      app.register((outer, _options, done) => {
        addEndpoint(outer, 'GET', '/outer', hello);
        outer.addHook('preHandler', pass);
        outer.register((inner, _inner, ready) => {
          addEndpoint(inner, 'GET', '/inner', hello);
          ready();
        });
        done();
      }),
  });
  for (const path of ['/outer', '/inner']) assert.equal(await door.get(path), 'fastify: hello');
  assert.equal(await door.get('/things/a'), 'fast: a');
});

test('an error that cannot be written cuts its connection, and harms nobody else', async () => {
  const broken = {
    get statusCode(): number {
      throw new TypeError('unreadable');
    },
  };
  await using door = await open({
    echo() {
      throw broken;
    },
  });
  await assert.rejects(door.post('/echo', 'x'));
  assert.ok(door.log.entries.some(({ msg }) => msg === 'refusal failed, connection cut'));
  assert.equal(await (await fetch(`${door.url}/things/a`)).text(), 'fastify: a');
});

test('without its option there is none', async () => {
  await using door = await open({ fastPath: false });
  assert.equal(await door.get('/things/a'), 'fastify: a');
});

test('a route whose path says more takes the path out of the fast path, and no other', async () => {
  await using door = await open({
    change: (app) => app.get('/things/mine', () => 'mine').get('/things/mine/more', () => 'more'),
  });
  assert.equal(await door.get('/things/mine'), 'mine');
  assert.equal(await door.post('/echo', 'x'), 'fast: x');
});

test('a drain ends the fast path', async () => {
  await using door = await open();
  door.listener.drain();
  const reply = await door.ask('/things/a');
  assert.equal(reply.headers.connection, 'close');
  assert.equal(reply.body, 'fastify: a');
});

test('clients that go away in the middle of a body, or before the reply, leave nothing behind', async () => {
  const waiting: (() => void)[] = [];
  let closed = 0;
  await using door = await open({
    echo: (ctx) => {
      ctx.onClose(() => closed++);
      return new Promise<string>((resolve) => waiting.push(() => resolve('late')));
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
  assert.equal(await door.get('/things/a'), 'fast: a');
  assert.deepEqual(door.recorded, ['GET /things/:param 200'], 'nobody had the others');
});
