import assert from 'node:assert/strict';
import { test } from 'node:test';
import Fastify, { type FastifyInstance } from 'fastify';
import { HealthRegistry, type ManagementOptions, Metrics, management, Readiness } from './management.ts';
import { ManagementOptionsError } from './options.ts';

// How the door gets on with an application that is not ours.

const SECURED = { users: [{ user: 'ann', password: 'pw', roles: [] }] };
const CREDENTIALS = { authorization: `Basic ${Buffer.from('ann:pw').toString('base64')}` };

async function start(changes: Partial<ManagementOptions> = {}, app: FastifyInstance = Fastify()) {
  const options: ManagementOptions = {
    basePath: '/actuator',
    include: ['*'],
    exclude: [],
    showValues: 'never',
    users: [],
    role: undefined,
    build: { version: '1', artifact: 'a', name: 'A' },
    health: new HealthRegistry([]),
    readiness: new Readiness(),
    metrics: new Metrics(),
    environment: { activeProfiles: [], propertySources: [] },
    endpoints: [],
    ...changes,
  };
  await app.register(management, options).ready();
  return app;
}

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
