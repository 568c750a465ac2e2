import assert from 'node:assert/strict';
import { test } from 'node:test';
import Fastify, { type InjectOptions } from 'fastify';
import { addOperations, type Operations } from './operations.ts';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE'] as const;

async function statuses(operations: Operations) {
  await using app = Fastify();
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
  const handler = () => 'x';
  assert.deepEqual(await statuses({ GET: handler }), ['GET', 'HEAD', 'OPTIONS']);
  assert.deepEqual(await statuses({ POST: handler }), ['POST', 'OPTIONS']);
  assert.deepEqual(await statuses({ GET: handler, POST: handler }), ['GET', 'HEAD', 'POST', 'OPTIONS']);
  assert.deepEqual(await statuses({ GET: handler, DELETE: handler }), ['GET', 'HEAD', 'DELETE', 'OPTIONS']);
  assert.deepEqual(await statuses({}), ['OPTIONS']);
});

test('HEAD may have a handler of its own, so that it does not do what GET does', async () => {
  await using app = Fastify();
  let reads = 0;
  addOperations(app, '/path', {
    GET() {
      return `${++reads}`;
    },
    HEAD: (_request, reply) => reply.header('x-own', 'yes').send(),
  });
  const head = await app.inject({ method: 'HEAD', url: '/path' });
  assert.equal(head.headers['x-own'], 'yes');
  assert.equal(reads, 0);
  assert.equal((await app.inject('/path')).body, '1');
});
