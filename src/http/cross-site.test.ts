import assert from 'node:assert/strict';
import { test } from 'node:test';
import fastify, { type FastifyInstance } from 'fastify';
import { addEndpoint } from './add-endpoint.ts';
import { refuseCrossSite, refuseCrossSiteSocket } from './cross-site.ts';
import type { Endpoint } from './endpoint.ts';
import { type ErrorFormat, sendProblem } from './error-format.ts';

const format: ErrorFormat = { contentType: 'text/plain', body: ({ code }) => code };
const reads = ['GET', 'HEAD', 'OPTIONS'] as const;
const writes = ['POST', 'PUT', 'DELETE', 'PATCH'] as const;

/** A server that counts what came through to its handler or its body parser. */
function guarded(): { app: FastifyInstance; handled: () => number; parsed: () => number } {
  let handled = 0;
  let parsed = 0;
  const app = fastify();
  app.setErrorHandler((error, request, reply) => sendProblem(format, error, request, reply));
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => {
    parsed++;
    done(null, body);
  });
  const endpoint: Endpoint = {
    bodyLimit: 100,
    admit: (exchange) => refuseCrossSite(exchange),
    handle() {
      handled++;
      return { status: 200, type: 'text/plain', body: 'done' };
    },
  };
  for (const method of [...reads, ...writes]) {
    addEndpoint(app, method, '/', endpoint, { exposeHeadRoute: false });
  }
  return { app, handled: () => handled, parsed: () => parsed };
}

test('a write from another site is a 403 before its body is read', async () => {
  const { app, handled, parsed } = guarded();
  await using _closing = app;
  for (const method of writes) {
    const headers = { 'sec-fetch-site': 'cross-site', 'content-type': 'text/plain' };
    const reply = await app.inject({ method, url: '/', headers, payload: 'name=x' });
    assert.equal(reply.statusCode, 403, method);
    assert.equal(reply.body, 'CROSS_SITE');
  }
  assert.equal(handled(), 0);
  assert.equal(parsed(), 0);
});

test('reads from another site pass: they change nothing and their answer stays hidden from the page', async () => {
  const { app, handled } = guarded();
  await using _closing = app;
  for (const method of reads) {
    const reply = await app.inject({ method, url: '/', headers: { 'sec-fetch-site': 'cross-site' } });
    assert.equal(reply.statusCode, 200, method);
  }
  assert.equal(handled(), reads.length);
});

test('writes of programs, of our own pages and of the address bar pass', async () => {
  const { app, handled } = guarded();
  await using _closing = app;
  const sites = [undefined, 'same-origin', 'same-site', 'none'];
  for (const site of sites) {
    for (const method of writes) {
      const headers = site === undefined ? {} : { 'sec-fetch-site': site };
      assert.equal((await app.inject({ method, url: '/', headers })).statusCode, 200, `${method} ${site}`);
    }
  }
  assert.equal(handled(), sites.length * writes.length);
});

test('a WebSocket of another site is refused, by what its browser says', () => {
  const passes = (host: string, headers: Readonly<Record<string, string>>) => {
    try {
      refuseCrossSiteSocket({ headers, host });
      return true;
    } catch (error) {
      assert.equal((error as { code?: unknown }).code, 'CROSS_SITE');
      return false;
    }
  };
  assert.ok(passes('portico.example', {}));
  assert.ok(passes('portico.example', { origin: 'https://portico.example:3000' }));
  assert.ok(passes('Portico.Example', { origin: 'https://portico.example' }));
  assert.ok(passes('[::1]', { origin: 'http://[::1]:3000' }));
  assert.ok(passes('portico.example', { origin: 'https://app.example', 'sec-fetch-site': 'same-site' }));
  for (const origin of ['https://evil.example', 'https://a.portico.example', 'null', '', 'portico.example']) {
    assert.ok(!passes('portico.example', { origin }), origin);
  }
  assert.ok(!passes('a.example', { origin: 'https://a.example', 'sec-fetch-site': 'cross-site' }));
});
