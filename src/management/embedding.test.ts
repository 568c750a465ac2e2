import assert from 'node:assert/strict';
import { test } from 'node:test';
import Fastify, { type FastifyInstance } from 'fastify';
import { managementApp } from '../../test/support/management-app.ts';
import type { CustomEndpoint } from './endpoints/custom.ts';
import { management } from './management.ts';
import { ManagementOptionsError } from './management-errors.ts';
import type { ManagementOptions } from './options.ts';

// How the door gets on with an application that is not ours.

const SECURED = { users: [{ user: 'ann', password: 'pw', roles: [] }] };
const CREDENTIALS = { authorization: `Basic ${Buffer.from('ann:pw').toString('base64')}` };

const start = (changes: Partial<ManagementOptions> = {}, app?: FastifyInstance) =>
  managementApp({ showValues: 'never', ...changes }, app);

test('an application around it is left alone', async () => {
  const around = Fastify();
  around.get('/own', () => ({ own: true }));
  around.get('/fails', () => {
    throw new Error('own error');
  });
  await using app = await start(SECURED, around);
  const own = await app.inject('/own');
  assert.equal(own.statusCode, 200);
  assert.equal(own.headers['cache-control'], undefined);
  assert.equal((await app.inject('/fails')).json().message, 'own error');
  assert.equal((await app.inject('/actuators')).json().message, 'Route GET:/actuators not found');
  assert.equal((await app.inject('/nope')).json().statusCode, 404);
});

test("the application's catch-all route takes no path under the base path", async () => {
  const around = Fastify();
  around.all('/*', () => 'page');
  await using app = await start(SECURED, around);
  assert.equal((await app.inject('/about')).body, 'page');
  for (const url of ['/actuator', '/actuator/', '/actuator/nope', '/actuator/health']) {
    assert.equal((await app.inject(url)).statusCode, 401, url);
    const allowed = await app.inject({ url, headers: CREDENTIALS });
    assert.notEqual(allowed.body, 'page', url);
  }
});

test('without options there are the standard endpoints, and readiness follows the application', async () => {
  const app = Fastify();
  await app.register(management).ready();
  for (const id of ['health', 'info', 'metrics', 'env']) {
    assert.equal((await app.inject(`/actuator/${id}`)).statusCode, 200, id);
  }
  for (const id of ['prometheus', 'threaddump', 'heapdump', 'loggers', 'shutdown']) {
    assert.equal((await app.inject(`/actuator/${id}`)).statusCode, 404, id);
  }
  const { names } = (await app.inject('/actuator/metrics')).json();
  assert.ok(names.includes('process.uptime') && names.includes('nodejs.gc.duration'));
  const { propertySources } = (await app.inject('/actuator/env')).json();
  const values = Object.values<{ value: string }>(propertySources[0].properties).map(({ value }) => value);
  assert.deepEqual([...new Set(values)], ['******']);

  assert.equal((await app.inject('/readyz')).statusCode, 503);
  await app.listen({ host: '127.0.0.1', port: 0 });
  assert.equal((await app.inject('/readyz')).statusCode, 200);
  await app.close();
});

test('options that are undefined are as good as absent', async () => {
  await using app = Fastify();
  const endpoints = [{ id: 'mine', read: () => 'mine' }];
  const options = {
    basePath: undefined,
    include: undefined,
    users: undefined,
    metrics: undefined,
    endpoints,
  };
  await app.register(management, options).ready();
  assert.equal((await app.inject('/actuator/info')).statusCode, 200);
  assert.equal((await app.inject('/actuator/mine')).body, 'mine');
});

test('an application that answers unknown paths itself', async () => {
  const around = Fastify();
  around.setNotFoundHandler((_request, reply) => reply.code(404).send('own'));
  await using app = await start(SECURED, around);
  assert.equal((await app.inject('/nope')).body, 'own');
  assert.equal((await app.inject('/actuator/nope')).statusCode, 401);

  const taken = Fastify();
  taken.setNotFoundHandler((_request, reply) => reply.code(404).send('own'));
  await assert.rejects(async () => start({ basePath: '/' }, taken), ManagementOptionsError);
});

test('options that make no door stop the start', async () => {
  const own = (id: string) => ({ id, read: () => '' });
  const wrong: Partial<ManagementOptions>[] = [
    { basePath: '' },
    { basePath: 'actuator' },
    { basePath: '/a/:id' },
    { basePath: '/a//b' },
    { basePath: '/a/../b' },
    { basePath: '/*' },
    { endpoints: [own('')] },
    { endpoints: [own('Upper')] },
    { endpoints: [own('a/b')] },
    { endpoints: [own('he-alth')] },
    { endpoints: [own('a-b'), own('a.B')] },
    { basePath: '/', endpoints: [own('livez')] },
    { endpoints: [{ id: 'nothing' } as unknown as CustomEndpoint] },
    { endpoints: [{ ...own('a'), path: 'a/b' }] },
    { endpoints: [{ ...own('a'), query: ['x', 'x?'] }] },
    { springBootAdmin: { url: 'sba:9090' } },
    { springBootAdmin: { url: 'http://sba', serviceUrl: '/shop' } },
  ];
  for (const changes of wrong) {
    await assert.rejects(async () => start(changes), ManagementOptionsError, JSON.stringify(changes));
  }
  const user = (name: string, password: string) => [{ user: name, password, roles: [] }];
  await assert.rejects(async () => start({ users: user('a:b', 'x') }), { code: 'USER_NAME' });
  await assert.rejects(async () => start({ users: user('a', '') }), { code: 'EMPTY_SECRET' });
});

test("an error of the application's hooks is answered in the door's format", async () => {
  const around = Fastify();
  around.addHook('onRequest', async () => {
    throw Object.assign(new Error('inside'), { statusCode: 502 });
  });
  await using app = await start({}, around);
  for (const url of ['/actuator/info', '/actuator/nope', '/livez']) {
    const response = await app.inject(url);
    assert.equal(response.statusCode, 502);
    assert.deepEqual(response.json(), { status: 502, error: 'Bad Gateway' });
  }
});
