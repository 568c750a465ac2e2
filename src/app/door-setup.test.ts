import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import Fastify, { type FastifyInstance } from 'fastify';
import { listRoutes } from '../http/routes.ts';
import { addSetup, DoorSetupError } from './door-setup.ts';
import type { DoorSetup } from './load-config.ts';

const FILE = join(process.cwd(), 'portico.config.ts');

/** A door with GET /users/:id and, in a plugin, a handler of unknown paths; what a setup makes of it. */
async function build(setup: DoorSetup, ownPath?: string, pluginTimeout = 60_000): Promise<FastifyInstance> {
  const app = Fastify({ pluginTimeout });
  const routes = listRoutes(app);
  const secrets = { texts: ['secret-77'] };
  const explain = addSetup(app, { door: 'rest', setup, file: FILE, secrets, ownPath, routes });
  app.register(async (room) => {
    room.setNotFoundHandler((_request, reply) => reply.code(404).send('room'));
    room.get('/users/:id', () => 'room');
  });
  await app.ready().then(undefined, (failure: unknown) => {
    throw explain(failure);
  });
  return app;
}

const refused = (setup: DoorSetup, message: string | RegExp, ownPath?: string, pluginTimeout?: number) =>
  assert.rejects(build(setup, ownPath, pluginTimeout), (error) => {
    assert.ok(error instanceof DoorSetupError, String(error));
    if (typeof message === 'string') assert.equal(error.message, `portico.config.ts: rest.setup ${message}`);
    else assert.match(error.message, message);
    return true;
  });

const tick = () => new Promise((resolve) => setImmediate(resolve));

test('a setup adds routes, hooks and plugins, at once or later, and its hooks see the routes of the door', async () => {
  const app = await build(async (door) => {
    await tick();
    await door.register(async (scope) => void scope.get('/plugged', () => 'plugged'));
    await tick();
    door.addHook('onRequest', async (_request, reply) => void reply.header('x-mine', 'yes'));
    door.get('/mine', () => 'mine');
  });
  for (const [url, body] of [
    ['/users/1', 'room'],
    ['/mine', 'mine'],
    ['/plugged', 'plugged'],
    ['/none', 'room'],
  ] as const) {
    const reply = await app.inject(url);
    assert.equal(reply.body, body);
    assert.equal(reply.headers['x-mine'], 'yes', url);
  }
});

test('a setup that fails is named with its reason, without secrets', async () => {
  await refused(() => {
    throw new TypeError('no secret-77\nhere');
  }, 'failed: TypeError: no ****** here');
  await refused(() => Promise.reject(new Error('later')), 'failed: Error: later');
  await refused(() => Promise.reject(), 'failed: Error: undefined');
  await refused(
    (app) => void app.register(async () => Promise.reject(new Error('in a plugin'))),
    'failed: Error: in a plugin',
  );
});

test('its place in the configuration module is told', async () => {
  const error = new Error('x');
  error.stack = `Error: x\n    at inner (file:///elsewhere.js:1:1)\n    at setup (file://${FILE}:12:5)\n    at ${FILE}:1:1`;
  await refused(() => Promise.reject(error), 'failed: Error: x (portico.config.ts:12:5)');
});

test('a setup that never ends, or whose plugins do not, ends the start', async () => {
  const never = () => new Promise<void>(() => {});
  await refused(never, 'did not end in time; a promise in it is never settled', undefined, 200);
  const message = /rest\.setup failed: .*did not start in time/;
  await refused((app) => void app.register(never), message, undefined, 200);
});

test('a route that the door has already is named', async () => {
  const twice = 'which the door has already; choose another path';
  await refused((app) => void app.get('/users/:name', () => 'mine'), `adds GET /users/:id, ${twice}`);
  await refused((app) => void app.get('/a', () => 1).get('/a', () => 2), `adds GET /a, ${twice}`);
});

test('a handler of unknown paths does not go with that of the door', async () => {
  await refused(
    (app) => void app.setNotFoundHandler(() => 'mine'),
    /rest\.setup failed: .*Not found handler already set/,
  );
});

test("a path that is all of the door's own takes no routes", async () => {
  const mine: DoorSetup = (app) => void app.get('/base/mine', () => 'mine');
  await refused(
    mine,
    'adds /base/mine below /base, where it would not be behind the log-in; use management.endpoints, or another path',
    '/base',
  );
  await refused((app) => void app.get('/base', () => 'mine'), /adds \/base below/, '/base');
  assert.equal((await (await build(mine, '/ba')).inject('/base/mine')).body, 'mine');
});

test('what is not the fault of the setup stays as it is', async () => {
  const app = Fastify();
  const options = { door: 'rest', setup: () => {}, file: FILE, secrets: { texts: [] }, ownPath: undefined };
  const explain = addSetup(app, { ...options, routes: () => [] });
  await app.ready();
  const failure = new TypeError('another');
  assert.equal(explain(failure), failure);
  await app.close();
});
