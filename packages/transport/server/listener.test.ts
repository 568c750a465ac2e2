import assert from 'node:assert/strict';
import { networkInterfaces } from 'node:os';
import { describe, test } from 'node:test';
import fastify, { type FastifyInstance } from 'fastify';
import { openLog } from '../../../src/telemetry/log.ts';
import { rawHttp } from '../../../test/support/connections.ts';
import { captureLog } from '../../../test/support/log-capture.ts';
import type { ErrorFormat } from '../error-format.ts';
import { HttpProblem } from '../problem.ts';
import { LIMITS } from './limits.ts';
import { ListenError } from './listen.ts';
import { createListener, type Listener, type ListenerOptions, lazyCompilers } from './listener.ts';

describe('listener', () => {
  const errors: ErrorFormat = {
    contentType: 'text/x-door',
    body: ({ code }, request) => `${code} ${request?.method ?? '-'}`,
  };

  interface Door extends AsyncDisposable {
    readonly listener: Listener;
    readonly url: string;
    readonly entries: readonly Record<string, unknown>[];
  }

  /** A listener with `routes` on a free port. */
  async function open(routes: (app: FastifyInstance) => void = () => {}, host = '127.0.0.1'): Promise<Door> {
    const { stream, entries } = captureLog();
    const listener = createListener(options({ host, log: await openLog({ level: 'info', stream }) }));
    listener.app.get('/hello', (_request, reply) => reply.send('hello'));
    routes(listener.app);
    const url = await listener.listen();
    return { listener, url, entries, [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose]() };
  }

  function options(some: Pick<ListenerOptions, 'log'> & Partial<ListenerOptions>): ListenerOptions {
    return {
      door: 'test',
      host: '127.0.0.1',
      port: 0,
      portHint: '--test-port or TEST_PORT',
      errors,
      ...some,
    };
  }

  const ID = /^[0-9a-f]{8}-[0-9a-z]+$/;
  /** The statuses of all replies in a text; a body may end without a line break. */
  const statuses = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status);
  const idOf = (text: string) => /^x-request-id: (.*)\r$/m.exec(text)?.[1] ?? '';

  test('what never became a request is refused in the format of the door', async () => {
    await using door = await open();
    const garbage = await rawHttp(door.url, ['hello there\r\n\r\n']);
    assert.equal(garbage.status, 400);
    assert.match(garbage.text, /\r\n\r\nHPE_INVALID_METHOD -$/);
    const overflow = await rawHttp(door.url, [
      `GET / HTTP/1.1\r\nHost: h\r\nA: ${'a'.repeat(LIMITS.maxHeaderBytes)}\r\n\r\n`,
    ]);
    assert.equal(overflow.status, 431);
    assert.match(overflow.text, /^Content-Type: text\/x-door\r$/m);
  });

  const refusals = {
    'two Host fields': ['GET /hello HTTP/1.1\r\nHost: h\r\nhOST: h\r\n\r\n', 400, 'DUPLICATE_HOST GET'],
    'HTTP/1.0 with Transfer-Encoding': [
      'POST /hello HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      400,
      'TRANSFER_ENCODING_1_0 POST',
    ],
    'too many header fields': [
      `GET /hello HTTP/1.1\r\nHost: h\r\n${'A: 1\r\n'.repeat(LIMITS.maxHeaders - 1)}\r\n`,
      431,
      'TOO_MANY_HEADERS GET',
    ],
  } as const;

  for (const [name, [bytes, status, body]] of Object.entries(refusals)) {
    test(`${name}: ${status}, with a request id, and what follows on the connection is not read`, async () => {
      await using door = await open();
      const reply = await rawHttp(door.url, [bytes, 'GET /hello HTTP/1.1\r\nHost: h\r\n\r\n']);
      assert.equal(reply.status, status);
      assert.equal(statuses(reply.text).length, 1);
      assert.match(reply.text, /^connection: close\r$/im);
      assert.match(idOf(reply.text), ID);
      assert.ok(reply.text.endsWith(`\r\n\r\n${body}`), reply.text);
    });
  }

  test('the absolute form of a target is the same request', async () => {
    await using door = await open((app) => {
      app.get('/', (request) => `root ${request.url}`);
      app.get('/echo', (request) => `echo ${request.url}`);
    });
    const ask = async (target: string) => {
      const reply = await rawHttp(door.url, [
        `GET ${target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`,
      ]);
      return reply.text.split('\r\n\r\n')[1];
    };
    assert.equal(await ask('http://elsewhere/echo?a=1'), 'echo /echo?a=1');
    assert.equal(await ask('HTTPS://elsewhere:1/echo'), 'echo /echo');
    assert.equal(await ask('http://elsewhere'), 'root /');
    assert.equal(await ask('http://elsewhere?a=1'), 'root /?a=1');
  });

  test('requests in one packet are answered in their order', async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    await using door = await open((app) => {
      app.get('/slow', () => promise);
      // Answered at once, yet behind the slow one.
      app.get('/quick', () => {
        resolve('finished');
        return 'quick';
      });
    });
    const [slow, quick, none] = ['/slow', '/quick', '/none'].map(
      (path) => `GET ${path} HTTP/1.1\r\nHost: h\r\n`,
    );
    const { text } = await rawHttp(door.url, [`${slow}\r\n${quick}\r\n${none}Connection: close\r\n\r\n`]);
    assert.deepEqual(statuses(text), ['200', '200', '404']);
    assert.ok(text.indexOf('finished') < text.indexOf('quick'));
  });

  test('garbage behind a request changes no byte of its reply', async () => {
    await using door = await open();
    const { text } = await rawHttp(door.url, ['GET /hello HTTP/1.1\r\nHost: h\r\n\r\ngarbage\r\n\r\n']);
    // It may be cut off, as the garbage came before it was sent.
    if (text === '') return;
    assert.deepEqual(statuses(text)[0], '200');
    assert.ok(text.includes('\r\n\r\nhello'), text);
  });

  test('every reply has a request id of its own, errors too, and a client cannot choose it', async () => {
    await using door = await open((app) => {
      app.get('/fails', () => {
        throw new Error('secret-91');
      });
      app.get('/refuses', () => {
        throw new HttpProblem(409, 'NO_HANDLER', 'no');
      });
    });
    const ids = new Set<string>();
    for (const [path, status] of Object.entries({ hello: 200, none: 404, fails: 500, refuses: 409 })) {
      for (let i = 0; i < 10; i++) {
        const reply = await fetch(`${door.url}/${path}`, {
          headers: { 'x-request-id': 'mine', 'request-id': 'mine' },
        });
        assert.equal(reply.status, status);
        assert.equal(reply.headers.get('x-content-type-options'), 'nosniff');
        assert.ok(!(await reply.text()).includes('secret-91'));
        const id = reply.headers.get('x-request-id') ?? '';
        assert.match(id, ID);
        ids.add(id);
      }
    }
    assert.equal(ids.size, 40);
    const failures = door.entries.filter(({ msg }) => msg === 'request failed');
    assert.equal(failures.length, 10, 'our own faults are logged, refusals are not');
    for (const { reqId } of failures) assert.ok(ids.has(String(reqId)));
  });

  test('a malformed path is a 400 in the format of the door', async () => {
    await using door = await open();
    const reply = await rawHttp(door.url, ['GET /%zz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n']);
    assert.equal(reply.status, 400);
    assert.match(reply.text, /\r\n\r\nFST_ERR_BAD_URL GET$/);
  });

  test('a malformed path gets the headers of every reply', async () => {
    await using door = await open();
    door.listener.drain();
    const reply = await rawHttp(door.url, ['GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n']);
    assert.match(idOf(reply.text), ID);
    assert.match(reply.text, /^x-content-type-options: nosniff\r$/m);
    assert.match(reply.text, /^connection: close\r$/im);
  });

  test('a port in use is a ListenError that names the door, the place and the way out', async () => {
    await using first = await open();
    const port = Number(new URL(first.url).port);
    await using second = createListener(options({ port, log: await openLog({ level: 'silent' }) }));
    await assert.rejects(second.listen(), (error) => {
      assert.ok(error instanceof ListenError);
      assert.equal(error.code, 'CANNOT_LISTEN');
      assert.equal(
        error.message,
        `The test door cannot listen on 127.0.0.1:${port}: the port is in use. ` +
          'Stop the other program, or choose another port with --test-port or TEST_PORT.',
      );
      assert.equal((error.cause as NodeJS.ErrnoException).code, 'EADDRINUSE');
      return true;
    });
  });

  test('every reason not to listen says what to do', () => {
    const message = (code?: string) =>
      new ListenError({ door: 'rest', host: 'h', port: 80, portHint: '--rest-port' }, code && { code })
        .message;
    assert.match(message('EACCES'), /above 1023 with --rest-port\.$/);
    assert.match(message('EADDRNOTAVAIL'), /does not have the address\. Set --host or HOST/);
    assert.match(message('ENOTFOUND'), /does not have the address/);
    assert.equal(message('EWEIRD'), 'The rest door cannot listen on h:80: EWEIRD.');
    assert.equal(message(), 'The rest door cannot listen on h:80: unknown error.');
  });

  const hasIpv6 = Object.values(networkInterfaces())
    .flat()
    .some((each) => each?.address === '::1');
  test('the base URL of an IPv6 address can be used as it is', {
    skip: !hasIpv6 && 'no IPv6 here',
  }, async () => {
    await using door = await open(undefined, '::1');
    assert.match(door.url, /^http:\/\/\[::1\]:\d+$/);
    assert.equal((await fetch(`${door.url}/hello`)).status, 200);
  });
});

describe('lazy compilers', () => {
  test('a route with schemas has them checked and used, as without', async () => {
    const app = fastify({ schemaController: { compilersFactory: lazyCompilers() } });
    const body = { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } };
    const response = { 200: { type: 'object', properties: { n: { type: 'integer' } } } };
    app.post('/', { schema: { body, response } }, (request) => ({
      ...(request.body as object),
      left: 'out',
    }));
    const post = (payload: object) => app.inject({ method: 'POST', url: '/', payload });
    assert.deepEqual((await post({ n: 1 })).json(), { n: 1 });
    const refused = await post({ n: 'x' });
    assert.equal(refused.statusCode, 400);
    assert.match(refused.body, /body\/n must be integer/);
  });
});
