import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Reply } from '@portico/transport';
import Fastify, { type InjectOptions } from 'fastify';
import { addOperations, type Operations, prepareScope } from './operations.ts';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE'] as const;

const text = (body: string): Reply => ({ status: 200, type: 'text/plain', body });

async function statuses(operations: Operations) {
  await using app = Fastify();
  prepareScope(app);
  addOperations(app, '/path', operations);
  const options = await app.inject({ method: 'OPTIONS', url: '/path' });
  assert.equal(options.statusCode, 200);
  assert.equal(options.body, '');
  assert.equal(options.headers['cache-control'], 'no-store');
  const allowed = String(options.headers.allow).split(', ');
  for (const method of METHODS) {
    // A body that nobody could read must not matter.
    const headers = { 'content-type': 'text/nonsense' };
    const refusing = { method, url: '/path', headers, ...(method === 'TRACE' ? {} : { payload: '{' }) };
    const accepted = allowed.includes(method);
    const response = await app.inject((accepted ? { method, url: '/path' } : refusing) as InjectOptions);
    assert.equal(response.statusCode, accepted ? 200 : 405, method);
    if (!accepted) assert.equal(response.headers.allow, options.headers.allow);
  }
  return allowed;
}

test('Allow names what there is, OPTIONS among it, and all else is 405', async () => {
  const handler = () => text('x');
  assert.deepEqual(await statuses({ get: handler }), ['GET', 'HEAD', 'OPTIONS']);
  assert.deepEqual(await statuses({ post: handler }), ['POST', 'OPTIONS']);
  assert.deepEqual(await statuses({ get: handler, post: handler }), ['GET', 'HEAD', 'POST', 'OPTIONS']);
  assert.deepEqual(await statuses({ get: handler, delete: handler }), ['GET', 'HEAD', 'DELETE', 'OPTIONS']);
  assert.deepEqual(await statuses({}), ['OPTIONS']);
});

test('HEAD may have headers of its own, so that it does not do what GET does', async () => {
  await using app = Fastify();
  let reads = 0;
  addOperations(app, '/path', {
    get: () => text(`${++reads}`),
    head: () => ({ type: 'text/plain', headers: { 'x-own': 'yes' } }),
  });
  const head = await app.inject({ method: 'HEAD', url: '/path' });
  assert.equal(head.headers['x-own'], 'yes');
  assert.equal(head.headers['content-length'], undefined);
  assert.equal(reads, 0);
  assert.equal((await app.inject('/path')).body, '1');
});

test('nothing is at a path that does not exist, whatever the method', async () => {
  await using app = Fastify();
  prepareScope(app);
  addOperations(app, '/of/:name', { post: () => text('x'), exists: (name) => name === 'here' });
  for (const method of ['GET', 'OPTIONS', 'PUT'] as const) {
    assert.equal((await app.inject({ method, url: '/of/gone' })).statusCode, 404, method);
  }
  assert.equal((await app.inject({ method: 'OPTIONS', url: '/of/here' })).headers.allow, 'POST, OPTIONS');
  assert.equal((await app.inject('/of/here')).statusCode, 405);
});

test('a write from another site is refused before its body is read, and so is what is no JSON', async () => {
  await using app = Fastify();
  prepareScope(app);
  const bodies: unknown[] = [];
  addOperations(app, '/path', {
    post: (_exchange, body) => {
      bodies.push(body);
      return text('x');
    },
  });
  const post = async (headers: Record<string, string>, payload = '') =>
    (await app.inject({ method: 'POST', url: '/path', headers, payload })).statusCode;
  const json = 'application/json';
  assert.equal(await post({ 'sec-fetch-site': 'cross-site', 'content-type': json }, '{'), 403);
  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'nonsense',
    'application/jsonx',
    '',
  ]) {
    assert.equal(await post({ 'content-type': type }, '{}'), 415, type);
  }
  assert.equal(await post({ 'content-type': 'text/plain' }), 415);
  assert.equal(await post({ 'content-type': json }, '{'), 400);
  assert.equal(await post({ 'content-type': json }, `"${'x'.repeat(64 * 1024)}"`), 413);
  assert.deepEqual(bodies, []);
  assert.equal(await post({}), 200);
  assert.equal(await post({ 'content-type': 'Application/JSON ; charset=utf-8' }, '{"a":1}'), 200);
  assert.equal(await post({ 'content-type': 'application/vnd.spring-boot.actuator.v2+json' }, '2'), 200);
  assert.deepEqual(bodies, [undefined, { a: 1 }, 2]);
});
