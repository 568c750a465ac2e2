import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  createServer,
  IncomingMessage,
  type RequestListener,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import { type AddressInfo, connect, Socket } from 'node:net';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { rawHttp } from '../../../test/support/connections.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import type { ErrorFormat } from '../error-format.ts';
import { Connections } from './connections.ts';
import { clientErrorHandler, originForm, refusedFraming } from './guards.ts';
import { LIMITS } from './limits.ts';

describe('client error', () => {
  /** More bytes than characters, so that a length in characters is caught. */
  const format: ErrorFormat = {
    contentType: 'text/x-door; charset=utf-8',
    body: ({ status, code, message }) => `${status} ${code} ${message} – ✓`,
  };

  interface Server extends AsyncDisposable {
    readonly url: string;
    /** The connections that are open. */
    readonly sockets: ReadonlySet<Socket>;
  }

  async function listen(handle: RequestListener, options: ServerOptions = {}): Promise<Server> {
    const connections = new Connections({ max: 10, maxPerAddress: undefined });
    const server = createServer({ maxHeaderSize: 1024, ...options }, (request, response) => {
      connections.of(request.socket)?.begin(response);
      handle(request, response);
    });
    connections.watch(server);
    const sockets = new Set<Socket>();
    server.on('connection', (socket: Socket) => {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
    });
    const onClientError = clientErrorHandler(format, connections, { debug() {} });
    server.on('clientError', (error, socket) => onClientError(error, socket as Socket));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return {
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      sockets,
      async [Symbol.asyncDispose]() {
        server.closeAllConnections();
        server.close();
        await once(server, 'close');
      },
    };
  }

  const unreached: RequestListener = (_request, response) => {
    response.end('reached');
  };

  /** What a whole reply says, with its length checked. */
  function checked(text: string): { readonly head: string; readonly body: string } {
    const [head = '', ...rest] = text.split('\r\n\r\n');
    const body = rest.join('\r\n\r\n');
    assert.equal(
      /^Content-Length: (\d+)$/im.exec(head)?.[1],
      String(body.length),
      'raw text is one byte per unit',
    );
    return { head, body: Buffer.from(body, 'latin1').toString() };
  }

  const HOST = 'Host: h\r\n';
  const broken: Readonly<Record<string, readonly [bytes: string, status: number, code: string]>> = {
    'no HTTP at all': ['\x16\x03\x01\x02\x00\r\n\r\n', 400, 'HPE_INVALID_METHOD'],
    'an unknown method': ['GRAB / HTTP/1.1\r\n\r\n', 400, 'HPE_INVALID_METHOD'],
    'a malformed version': [`GET / HTTP/1.x\r\n${HOST}\r\n`, 400, 'HPE_INVALID_VERSION'],
    'a space before the colon': [`GET / HTTP/1.1\r\n${HOST}A : b\r\n\r\n`, 400, 'HPE_INVALID_HEADER_TOKEN'],
    'two lengths': [`POST / HTTP/1.1\r\n${HOST}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`, 400, 'HPE_'],
    'headers that are too large': [
      `GET / HTTP/1.1\r\n${HOST}A: ${'a'.repeat(2048)}\r\n\r\n`,
      431,
      'HPE_HEADER_OVERFLOW',
    ],
  };

  for (const [name, [bytes, status, code]] of Object.entries(broken)) {
    test(`${name} is a ${status} in the format of the door, and the connection is closed`, async () => {
      await using server = await listen(unreached);
      const reply = await rawHttp(server.url, [bytes]);
      assert.equal(reply.status, status);
      assert.equal(reply.replies, 1);
      const { head, body } = checked(reply.text);
      assert.match(head, /^Connection: close$/m);
      assert.match(head, /^Content-Type: text\/x-door; charset=utf-8$/m);
      assert.ok(body.startsWith(`${status} ${code}`), body);
      assert.ok(body.endsWith('– ✓'));
      await waitFor('the connection to close', () => server.sockets.size === 0);
    });
  }

  /** A connection that says what it is told to, when it is told to. */
  function dial(url: string): { readonly socket: Socket; text(): string; readonly closed: Promise<unknown> } {
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(url).port), allowHalfOpen: true });
    let text = '';
    socket.setEncoding('latin1').on('data', (piece: string) => {
      text += piece;
    });
    socket.on('error', () => {});
    return { socket, text: () => text, closed: once(socket, 'close') };
  }

  test('a client that keeps its half of the connection open does not hold the socket', async () => {
    await using server = await listen(unreached);
    const { socket, text } = dial(server.url);
    socket.write('garbage\r\n\r\n');
    await waitFor('the reply', () => text().includes('400'));
    await waitFor('the server to let go', () => server.sockets.size === 0);
    socket.destroy();
  });

  test('headers that never end are a 408', async () => {
    await using server = await listen(unreached, { headersTimeout: 50, connectionsCheckingInterval: 20 });
    const reply = await rawHttp(server.url, [`GET / HTTP/1.1\r\n${HOST}`]);
    assert.equal(reply.status, 408);
    assert.equal(checked(reply.text).body, '408 ERR_HTTP_REQUEST_TIMEOUT Request Timeout – ✓');
  });

  test('garbage behind a finished reply gets a reply of its own', async () => {
    await using server = await listen(unreached);
    const { socket, text, closed } = dial(server.url);
    socket.write(`GET / HTTP/1.1\r\n${HOST}\r\n`);
    await waitFor('the first reply', () => text().endsWith('reached'));
    const first = text();
    socket.end('garbage\r\n\r\n');
    await closed;
    assert.match(first, /^HTTP\/1\.1 200 /);
    assert.equal(checked(text().slice(first.length)).body, '400 HPE_INVALID_METHOD Bad Request – ✓');
  });

  test('garbage behind a request puts no byte into a reply that has begun', async () => {
    await using server = await listen((_request, response) => {
      response.write('first piece');
    });
    const { socket, text, closed } = dial(server.url);
    socket.write(`GET / HTTP/1.1\r\n${HOST}\r\n`);
    await waitFor('the reply to begin', () => text().includes('first piece'));
    const before = text();
    socket.end('garbage\r\n\r\n');
    await closed;
    assert.equal(text(), before);
  });

  test('a broken body puts no byte into a reply that began before its end', async () => {
    await using server = await listen((request, response) => {
      request.on('error', () => {}).resume();
      response.write('first piece');
    });
    const { socket, text, closed } = dial(server.url);
    socket.write(`POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n`);
    await waitFor('the reply to begin', () => text().includes('first piece'));
    const before = text();
    socket.end('ZZ\r\n');
    await closed;
    assert.equal(text(), before);
  });

  test('garbage behind a request is never answered in the place of its reply', async () => {
    const asked = Promise.withResolvers<void>();
    await using server = await listen(() => asked.resolve());
    const { socket, text, closed } = dial(server.url);
    socket.write(`GET / HTTP/1.1\r\n${HOST}\r\n`);
    await asked.promise;
    socket.end('garbage\r\n\r\n');
    await closed;
    assert.equal(text(), '');
  });

  test('the replies to whole requests come before the refusal of garbage behind them, even if it goes on', async () => {
    const waiting: ServerResponse[] = [];
    await using server = await listen((_request, response) => waiting.push(response));
    const { socket, text } = dial(server.url);
    socket.write(`GET / HTTP/1.1\r\n${HOST}\r\n`.repeat(2));
    socket.write('garbage\r\n\r\n');
    await waitFor('the requests', () => waiting.length === 2);
    socket.write('more garbage\r\n\r\n');
    for (const response of waiting) {
      await nextTurn();
      response.end('reached');
    }
    await waitFor('the refusal', () => text().includes('HPE_INVALID_METHOD'));
    socket.destroy();
    assert.deepEqual(text().match(/HTTP\/1\.1 \d{3}/g), ['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 400']);
  });

  const brokenBodies = {
    'a chunk that is none': ['ZZ\r\n', 400],
    'a chunk extension without end': [`1;${'a'.repeat(64 * 1024)}`, 413],
  } as const;

  for (const [name, [bytes, status]] of Object.entries(brokenBodies)) {
    test(`${name} in the body of the request at hand is a ${status}`, async () => {
      await using server = await listen((request) => request.on('error', () => {}).resume());
      const head = `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n`;
      const reply = await rawHttp(server.url, [head, bytes]);
      assert.equal(reply.status, status);
    });
  }

  test('a client that breaks off leaves the server as it was', async () => {
    await using server = await listen(unreached);
    const { socket } = dial(server.url);
    await once(socket, 'connect');
    socket.write(`GET / HTTP/1.1\r\n${HOST}`);
    await waitFor('the server to see it', () => server.sockets.size === 1);
    socket.resetAndDestroy();
    await waitFor('the connection to close', () => server.sockets.size === 0);
    const reply = await rawHttp(server.url, [`GET / HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`]);
    assert.equal(reply.status, 200);
  });
});

describe('request guard', () => {
  test('the origin form of every form of a request target', () => {
    const forms = {
      '/users': '/users',
      '/users?a=http://x/y': '/users?a=http://x/y',
      'http://host/users': '/users',
      'http://host:8000/users?a=1': '/users?a=1',
      'HTTPS://user@[::1]:1/users/1': '/users/1',
      'http://host//users': '//users',
      'http://host': '/',
      'http://host?a=1': '/?a=1',
      'http://': '/',
      'http:///users': '/users',
      // Not for us to read: other schemes, the asterisk form, the authority form, nothing.
      'ftp://host/users': 'ftp://host/users',
      '*': '*',
      'host:443': 'host:443',
      '': '',
      // A path that only looks absolute.
      '/http://host/users': '/http://host/users',
      '//host/users': '//host/users',
    };
    for (const [target, origin] of Object.entries(forms)) assert.equal(originForm(target), origin, target);
  });

  const authority = fc.constantFrom('h', 'example.com:80', '[::1]:8000', 'user@h', '', '%2f');
  const path = fc.string({ unit: fc.constantFrom('/', 'a', '.', '%2f', ':', '@') }).map((rest) => `/${rest}`);
  const query = fc.string({ unit: fc.constantFrom('/', '?', 'a', '=', ':', '&') }).map((rest) => `?${rest}`);
  const scheme = fc.constantFrom('http://', 'https://', 'HTTP://', 'hTTpS://');

  test('an absolute target with a path is cut behind its authority', () => {
    fc.assert(
      fc.property(scheme, authority, path, fc.oneof(query, fc.constant('')), (http, host, where, what) => {
        assert.equal(originForm(http + host + where + what), where + what);
      }),
    );
  });

  test('an absolute target without a path gets the root, its query untouched', () => {
    fc.assert(
      fc.property(scheme, authority, query, (http, host, what) => {
        assert.equal(originForm(http + host + what), `/${what}`);
      }),
    );
  });

  test('a slash in the query of an absolute target without a path does not become its path', {}, () => {
    assert.equal(originForm('http://host?next=/users/1'), '/?next=/users/1');
    assert.equal(originForm('http://host?/actuator/env'), '/?/actuator/env');
  });

  test('any text gives an origin form or stays as it is', () => {
    const target = fc.oneof(
      fc.string(),
      fc.array(fc.nat(0xffff)).map((units) => String.fromCharCode(...units)),
      fc.tuple(scheme, fc.string()).map((parts) => parts.join('')),
    );
    fc.assert(
      fc.property(target, (text) => {
        const origin = originForm(text);
        assert.ok(origin.startsWith('/') || origin === text);
        assert.equal(originForm(origin), origin, 'twice is like once');
        if (!/^https?:\/\//i.test(text)) assert.equal(origin, text);
      }),
      { numRuns: 500 },
    );
  });

  /** A request as the parser hands it over, with header fields as they came. */
  function request(fields: readonly (readonly [string, string])[], httpVersionMinor = 1): IncomingMessage {
    const message = new IncomingMessage(new Socket());
    message.httpVersionMinor = httpVersionMinor;
    message.rawHeaders = fields.flat();
    message.headers = Object.fromEntries(fields.map(([name, value]) => [name.toLowerCase(), value]));
    return message;
  }

  test('one Host passes; none is a 400 except in HTTP/1.0', () => {
    assert.equal(refusedFraming(request([['Host', 'a']])), undefined);
    assert.equal(refusedFraming(request([]))?.code, 'MISSING_HOST');
    assert.equal(refusedFraming(request([], 0)), undefined);
  });

  test('no Host and more than one are a 400, in any case, anywhere, with the same value or not', () => {
    const host = fc.tuple(fc.mixedCase(fc.constant('host')), fc.constantFrom('a', 'b', ''));
    const other = fc.tuple(fc.constantFrom('Accept', 'X-Host', 'hosts', 'hos', 'ho st'), fc.constant('host'));
    fc.assert(
      fc.property(
        fc.array(host, { maxLength: 4 }),
        fc.array(other, { maxLength: 20 }),
        fc.nat(),
        (hosts, others, at) => {
          const place = at % (others.length + 1);
          const fields = [...others.slice(0, place), ...hosts, ...others.slice(place)];
          const refused = refusedFraming(request(fields));
          const code = hosts.length > 1 ? 'DUPLICATE_HOST' : 'MISSING_HOST';
          assert.equal(refused?.code, hosts.length === 1 ? undefined : code);
          assert.equal(refused?.status, hosts.length === 1 ? undefined : 400);
        },
      ),
    );
  });

  test('a value that reads Host is no Host', () => {
    assert.equal(
      refusedFraming(
        request([
          ['Host', 'a'],
          ['X', 'Host'],
          ['Y', 'host'],
        ]),
      ),
      undefined,
    );
  });

  test(`${LIMITS.maxHeaders} header fields are too many, as some could have been dropped`, () => {
    const fields = (count: number) =>
      Array.from({ length: count }, (_, i) => [i === 0 ? 'host' : `x-${i}`, '1'] as const);
    assert.equal(refusedFraming(request(fields(LIMITS.maxHeaders - 1))), undefined);
    assert.equal(refusedFraming(request(fields(LIMITS.maxHeaders)))?.status, 431);
    assert.equal(refusedFraming(request(fields(LIMITS.maxHeaders)))?.code, 'TOO_MANY_HEADERS');
  });

  test('HTTP/1.0 with Transfer-Encoding is a 400, HTTP/1.1 with it and HTTP/1.0 without it are not', () => {
    const fields = [
      ['Host', 'a'],
      ['tRANSFER-encoding', 'chunked'],
    ] as const;
    assert.equal(refusedFraming(request(fields, 0))?.code, 'TRANSFER_ENCODING_1_0');
    assert.equal(refusedFraming(request(fields, 0))?.status, 400);
    assert.equal(refusedFraming(request(fields, 1)), undefined);
    assert.equal(refusedFraming(request([['Host', 'a']], 0)), undefined);
    assert.ok(refusedFraming(request([['Transfer-Encoding', '']], 0)), 'an empty one is one');
  });

  test('an expectation that nobody knows is a 417', () => {
    const expecting = (value: string) =>
      request([
        ['Host', 'a'],
        ['Expect', value],
      ]);
    assert.equal(refusedFraming(expecting('100-Continue')), undefined);
    assert.equal(refusedFraming(expecting('more'))?.status, 417);
    assert.equal(refusedFraming(expecting('more'))?.code, 'UNKNOWN_EXPECTATION');
  });
});
