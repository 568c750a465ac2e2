import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { hasTool } from '../machine/tools.ts';
import type { HttpRequest } from './load.ts';
import { openLoopDuring } from './open-loop.ts';
import { runWrk } from './wrk.ts';

/** A server that is closed when it is disposed of. */
async function serve(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { readonly port: number };
  return {
    origin: `http://127.0.0.1:${port}`,
    [Symbol.dispose]: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

test('wrk sends every byte of every request as it was given', {
  skip: hasTool('wrk', '-v') ? false : 'needs wrk (Debian package wrk)',
}, async () => {
  await using folder = await temporaryFolder();
  const bodies = ['{"a":"\\" \\\\ \n ü 1"}', '0'.repeat(300), 'é]]"\u0000'];
  const requests: readonly HttpRequest[] = bodies.map((body, i) => ({
    method: 'POST',
    path: `/${i}?q=%20`,
    headers: { 'x-number': `"${i}"` },
    body,
  }));
  const seen = new Set<string>();
  using server = await serve((request, response) => {
    text(request).then((body) => {
      seen.add(`${request.url} ${request.headers['x-number']} ${body}`);
      response.end();
    });
  });
  const load = { origin: server.origin, requests, connections: 4, seconds: 1 };
  const result = await runWrk({ ...load, folder: folder.path, cores: undefined });
  assert.deepEqual([...seen].sort(), bodies.map((body, i) => `/${i}?q=%20 "${i}" ${body}`).sort());
  assert.equal(result.failed, 0);
  assert.ok(result.requests > 0 && result.p99 >= result.p50);
});

test('wrk counts replies that are not a success', {
  skip: hasTool('wrk', '-v') ? false : 'needs wrk (Debian package wrk)',
}, async () => {
  await using folder = await temporaryFolder();
  using server = await serve((_request, response) => response.writeHead(503).end());
  const requests: readonly HttpRequest[] = [{ method: 'GET', path: '/' }];
  const load = { origin: server.origin, requests, connections: 1, seconds: 1 };
  const { failed, requests: sent } = await runWrk({ ...load, folder: folder.path, cores: undefined });
  assert.ok(failed > 0 && failed === sent);
});

test('an open loop goes on while a server stalls, and fails when it is refused', async () => {
  let held: (() => void)[] = [];
  using server = await serve((request, response) => {
    if (request.url === '/refused') response.writeHead(500).end();
    else held.push(() => response.end());
  });
  const { origin } = server;
  const { promise, resolve } = Promise.withResolvers<void>();
  const latencies = openLoopDuring({ origin, request: { method: 'GET', path: '/' } }, promise);
  while (held.length < 5) await delay(1);
  resolve();
  const release = setInterval(() => {
    for (const answer of held) answer();
    held = [];
  }, 1);
  assert.ok((await latencies).length >= 5);
  clearInterval(release);
  await assert.rejects(
    openLoopDuring({ origin, request: { method: 'GET', path: '/refused' } }, delay(1)),
    /answered 500/,
  );
});
