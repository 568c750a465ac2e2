import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addEndpoint, type Endpoint, type ErrorFormat, sendProblem } from '@portico/transport';
import fastify, { type FastifyInstance } from 'fastify';
import { refuseCrossSite, refuseCrossSiteForm, refuseFromOtherSite } from '../access/cors.ts';

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
    authorize: (ctx) => refuseCrossSite(ctx),
    handle() {
      handled++;
      return { status: 200, type: 'text/plain', body: 'done' };
    },
  };
  for (const method of [...reads, ...writes]) {
    // An endpoint for GET answers HEAD.
    if (method !== 'HEAD') addEndpoint(app, method, '/', endpoint);
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

/** Whether a judge lets a request pass. */
function passes(judge: () => void): boolean {
  try {
    judge();
    return true;
  } catch (error) {
    assert.equal((error as { code?: unknown }).code, 'CROSS_SITE');
    return false;
  }
}

/** Origins by the host that was asked for, and whether they are of its site. */
const ORIGINS: readonly (readonly [host: string, origin: string | undefined, expected: boolean])[] = [
  ['portico.example', undefined, true],
  ['portico.example', 'https://portico.example:3000', true],
  ['Portico.Example:8000', 'https://portico.example', true],
  ['portico.example.', 'https://portico.example', true],
  ['[::1]:8000', 'http://[::1]:3000', true],
  ['127.0.0.1:8000', 'http://127.0.0.1', true],
  ['portico.example', 'https://evil.example', false],
  ['portico.example', 'https://a.portico.example', false],
  ['portico.example', 'app://portico.example', false],
  ['portico.example', 'null', false],
  ['portico.example', '', false],
  ['portico.example', 'portico.example', false],
  ['', 'https://portico.example', false],
  ['a=b', 'https://c=d', false],
  ['127.0.0.1:8000', 'http://localhost:8000', false],
];

test('from browsers without Sec-Fetch-Site the name in Origin has to be the one that was asked for', () => {
  for (const [host, origin, expected] of ORIGINS) {
    const headers = origin === undefined ? {} : { origin };
    const what = `${origin} at ${host}`;
    assert.equal(
      passes(() => refuseFromOtherSite('WebSockets', { headers, host })),
      expected,
      what,
    );
    for (const method of writes)
      assert.equal(
        passes(() => refuseCrossSite({ method, headers, host })),
        expected,
        `${method} ${what}`,
      );
    for (const method of reads)
      assert.ok(
        passes(() => refuseCrossSite({ method, headers, host })),
        `${method} ${what}`,
      );
  }
});

test('Sec-Fetch-Site wins over Origin', () => {
  const host = 'portico.example';
  const from = (origin: string, site: string) =>
    passes(() => refuseFromOtherSite('Writes', { headers: { origin, 'sec-fetch-site': site }, host }));
  assert.ok(from('https://app.example', 'same-site'));
  assert.ok(from('https://app.example', 'none'));
  assert.ok(!from('https://portico.example', 'cross-site'));
});

test('over HTTP a proxy that is trusted says which host was asked for', async () => {
  for (const [trustProxy, expected] of [
    ['127.0.0.1', 200],
    [false, 403],
  ] as const) {
    await using app = fastify({ trustProxy });
    const endpoint: Endpoint = {
      bodyLimit: 0,
      authorize: (ctx) => refuseCrossSite(ctx),
      handle: () => ({ status: 200, type: 'text/plain', body: 'done' }),
    };
    addEndpoint(app, 'POST', '/', endpoint);
    const headers = { host: 'inner:8000', origin: 'https://app.example', 'x-forwarded-host': 'app.example' };
    assert.equal((await app.inject({ method: 'POST', url: '/', headers })).statusCode, expected);
  }
});

test('a form of another site is refused, and what a script can send without asking first', () => {
  const headers = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' };
  const sends = (contentType: string | null, given: Readonly<Record<string, string>> = headers) =>
    passes(() => refuseCrossSiteForm({ contentType, headers: given, host: 'portico.example' }));
  for (const type of [
    null,
    '',
    'text/plain',
    'text/plain;charset=UTF-8',
    'TEXT/PLAIN; application/json',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
  ]) {
    assert.ok(!sends(type), String(type));
    assert.ok(!sends(type, { origin: 'https://evil.example' }), String(type));
    assert.ok(sends(type, {}), 'a program');
    assert.ok(sends(type, { origin: 'https://portico.example' }), 'a page of its own');
  }
  for (const type of ['application/json', 'application/cloudevents+json', 'text/xml', 'text/plainx', 'x'])
    assert.ok(sends(type), type);
});
