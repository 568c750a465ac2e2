import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createNetServer } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { getCACertificates, setDefaultCACertificates, type TLSSocket } from 'node:tls';
import { makeCertificate } from '../../../test/support/certificates.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { Network, PrivateAddressError } from './addresses.ts';
import { createPoster } from './poster.ts';
import { ReplyError } from './reply-reader.ts';

type PosterOptions = Parameters<typeof createPoster>[0];

describe('post', () => {
  const never = new AbortController().signal;
  const body = Buffer.from('{"a":1}');

  async function receiver(answer: RequestListener, options: Partial<PosterOptions> = {}) {
    const server = createServer(answer);
    let connections = 0;
    let open = 0;
    server.on('connection', (socket) => {
      connections++;
      open++;
      socket.on('close', () => open--);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const poster = createPoster({ network: new Network(), allowPrivate: true, ...options });
    const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/in?x=1`);
    return {
      url,
      get connections() {
        return connections;
      },
      get open() {
        return open;
      },
      post: (signal: AbortSignal = never) => poster.post({ url, headers: { 'x-a': 'b' }, body, signal }),
      async [Symbol.asyncDispose]() {
        poster[Symbol.dispose]();
        server.closeAllConnections();
        server.close();
        await once(server, 'close');
      },
    };
  }

  test('the body goes out as it is, with its length, over kept connections', async () => {
    const seen: unknown[] = [];
    await using there = await receiver(async (request, response) => {
      const { method, url, headers } = request;
      seen.push([method, url, headers['x-a'], headers['content-length'], (await buffer(request)).toString()]);
      response.writeHead(202, { 'retry-after': '7' }).end('ok');
    });
    for (let i = 0; i < 3; i++) {
      const { excerpt, ...reply } = await there.post();
      assert.deepEqual([reply, await excerpt], [{ status: 202, retryAfter: '7' }, 'ok']);
    }
    assert.deepEqual(seen[0], ['POST', '/in?x=1', 'b', '7', '{"a":1}']);
    assert.deepEqual([seen.length, there.connections], [3, 1]);
  });

  test('the excerpt waits for no reply that goes on, and breaks with none', async () => {
    await using there = await receiver((request, response) => {
      request.resume();
      response.writeHead(200);
      response.write('begun');
    });
    assert.equal(await (await there.post()).excerpt, 'begun');
    const abort = new AbortController();
    const { excerpt } = await there.post(abort.signal);
    abort.abort();
    assert.match(await excerpt, /^(begun)?$/);
  });

  test('a redirect is an answer and is not followed', async () => {
    let requests = 0;
    await using there = await receiver((_request, response) => {
      requests++;
      response.writeHead(307, { location: '/elsewhere' }).end();
    });
    assert.equal((await there.post()).status, 307);
    assert.equal(requests, 1);
  });

  test('a reply without end is not read to its end, nor kept', async () => {
    let written = 0;
    await using there = await receiver((_request, response) => {
      response.writeHead(200);
      const chunk = Buffer.alloc(64 * 1024);
      const more = () => {
        written += chunk.length;
        if (!response.destroyed) response.write(chunk, () => setImmediate(more));
      };
      more();
    });
    assert.equal((await there.post()).status, 200);
    await waitFor('the connection to be gone', () => there.open === 0);
    assert.ok(written < 64 * 1024 * 1024, `${written} bytes`);
  });

  test('a reply whose body does not come does not keep its connection', async () => {
    await using there = await receiver(
      (_request, response) => {
        response.writeHead(200, { 'content-length': '10' });
        response.write('1');
      },
      { replyTime: 50 },
    );
    assert.equal((await there.post()).status, 200);
    await waitFor('the connection to be gone', () => there.open === 0);
  });

  test('the signal ends an attempt without an answer', async () => {
    await using there = await receiver(() => {});
    const cut = new AbortController();
    const posted = there.post(cut.signal);
    await waitFor('the request to be there', () => there.open === 1);
    cut.abort(new Error('too late'));
    await assert.rejects(posted);
    await waitFor('the connection to be gone', () => there.open === 0);
  });

  test('a connection serves again only after a reply that has ended beyond doubt', async () => {
    const replies = [
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
      'HTTP/1.1 204 No Content\r\n\r\n',
      'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 500 Forged\r\ncontent-length: 0\r\n\r\n',
      'HTTP/1.1 200 OK\r\ncontent-length: 0\r\nkeep-alive: timeout=1\r\n\r\n',
      'HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n',
    ];
    const served: number[] = [];
    let connections = 0;
    const server = createNetServer((socket) => {
      const nth = ++connections;
      socket
        .on('error', () => {})
        .on('data', () => {
          served.push(nth);
          socket.write(replies[served.length - 1] ?? '');
        });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    using poster = createPoster({ network: new Network(), allowPrivate: true });
    const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    const statuses: number[] = [];
    for (const _ of replies) {
      const signal = AbortSignal.timeout(60_000);
      const { status, excerpt } = await poster.post({ url, headers: {}, body, signal });
      statuses.push(status);
      await excerpt;
    }
    assert.deepEqual(
      [statuses, served],
      [
        [200, 204, 200, 200, 202],
        [1, 1, 1, 2, 3],
      ],
    );
    server.close();
  });

  test('https: the receiver is verified, its connection kept, and its session resumed', async (t) => {
    const authority = makeCertificate('Tests');
    const seen: unknown[] = [];
    const server = createTlsServer(makeCertificate('receiver', authority), (request, response) => {
      const socket = request.socket as TLSSocket & { readonly servername: string };
      seen.push([socket.isSessionReused(), socket.servername]);
      const isSecond = seen.length === 2;
      response.writeHead(isSecond ? 500 : 204, isSecond ? { connection: 'close' } : {}).end();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => server.close());
    const lookup = async () => [{ address: '127.0.0.1', family: 4 }];
    using poster = createPoster({ network: new Network({ lookup }), allowPrivate: true });
    const post = (host: string) => {
      const url = new URL(`https://${host}:${(server.address() as AddressInfo).port}/`);
      return poster.post({ url, headers: {}, body, signal: never });
    };
    await assert.rejects(post('localhost'), /certificate/);
    const trusted = getCACertificates('default');
    setDefaultCACertificates([...trusted, authority.cert]);
    t.after(() => setDefaultCACertificates(trusted));
    for (const status of [204, 500, 204]) assert.equal((await post('localhost')).status, status);
    assert.deepEqual(seen, [
      [false, 'localhost'],
      [false, 'localhost'],
      [true, 'localhost'],
    ]);
    assert.equal((await post('127.0.0.1')).status, 204);
    await assert.rejects(post('other.test'), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
  });

  test('a receiver that speaks another protocol fails the attempt', async () => {
    await using there = await receiver((request) => request.socket.end('220 mail.example ESMTP\r\n'));
    await assert.rejects(there.post(), ReplyError);
  });

  test('a header cannot add another one', async () => {
    await using there = await receiver((_request, response) => response.end());
    using poster = createPoster({ network: new Network(), allowPrivate: true });
    for (const headers of [{ 'x-a': 'b\r\nx-c: d' }, { 'x-a\r\nx-c': 'd' }, { 'x-a': '\u{1f600}' }])
      await assert.rejects(poster.post({ url: there.url, headers, body, signal: never }), TypeError);
    assert.equal(there.connections, 0);
  });

  test('private addresses are refused before anything is sent, names and numbers', async () => {
    await using there = await receiver((_request, response) => response.end(), { allowPrivate: false });
    await assert.rejects(() => there.post(), PrivateAddressError);
    there.url.hostname = 'localhost';
    await assert.rejects(() => there.post(), PrivateAddressError);
    there.url.hostname = '[::ffff:127.0.0.1]';
    await assert.rejects(() => there.post(), PrivateAddressError);
    assert.equal(there.connections, 0);
  });

  test('a receiver that is not there, or goes away, fails the attempt', async () => {
    const there = await receiver((request) => request.socket.destroy());
    await assert.rejects(() => there.post());
    await there[Symbol.asyncDispose]();
    await assert.rejects(() => there.post(), { code: 'ECONNREFUSED' });
  });
});
