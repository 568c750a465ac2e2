import assert from 'node:assert/strict';
import { test } from 'node:test';
import fastify from 'fastify';
import { lazyCompilers } from './lazy-compilers.ts';

test('a route with schemas has them checked and used, as without', async () => {
  const app = fastify({ schemaController: { compilersFactory: lazyCompilers() } });
  const body = { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } };
  const response = { 200: { type: 'object', properties: { n: { type: 'integer' } } } };
  app.post('/', { schema: { body, response } }, (request) => ({ ...(request.body as object), left: 'out' }));
  const post = (payload: object) => app.inject({ method: 'POST', url: '/', payload });
  assert.deepEqual((await post({ n: 1 })).json(), { n: 1 });
  const refused = await post({ n: 'x' });
  assert.equal(refused.statusCode, 400);
  assert.match(refused.body, /body\/n must be integer/);
});
