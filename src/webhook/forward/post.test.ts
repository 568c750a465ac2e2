import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { waitFor } from '../../../test/support/wait-for.ts';
import { PrivateAddressError } from './guarded-lookup.ts';
import { Network } from './network.ts';
import { createPoster, type PosterOptions } from './post.ts';

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
