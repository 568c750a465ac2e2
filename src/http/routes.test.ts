import assert from 'node:assert/strict';
import { test } from 'node:test';
import Fastify from 'fastify';
import { listRoutes } from './routes.ts';

const handler = () => '';

test('routes of an instance and its plugins, with their methods, by path', async () => {
  await using app = Fastify();
  const routes = listRoutes(app);
  app.get('/users', handler);
  app.post('/users', handler);
  app.get('/users/', { exposeHeadRoute: false }, handler);
  app.route({ method: ['PUT', 'DELETE'], url: '/users/:id', handler });
  app.register(async (inner) => inner.get('/x', { exposeHeadRoute: false }, handler), { prefix: '/inner' });
  app.options('/users', { config: { unlisted: true } }, handler);
  app.all('/*', { config: { unlisted: true } }, handler);
  await app.ready();
  assert.deepEqual(routes(), [
    { path: '/users', methods: ['GET', 'HEAD', 'POST'] },
    { path: '/users/:id', methods: ['PUT', 'DELETE'] },
    { path: '/inner/x', methods: ['GET'] },
  ]);
});

test('the root is a path of its own', async () => {
  await using app = Fastify();
  const routes = listRoutes(app);
  app.get('/', { exposeHeadRoute: false }, handler);
  await app.ready();
  assert.deepEqual(routes(), [{ path: '/', methods: ['GET'] }]);
});
