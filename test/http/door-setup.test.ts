import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { startConfigExample } from '../support/config-example.ts';
import { type Asked, keepConnection } from '../support/connections.ts';
import { startPortico } from '../support/portico-process.ts';
import { startTestService } from '../support/service.ts';
import { checkShownRequests, shownCommand, shownCommands } from '../support/shown-commands.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const SERVE = shownCommand('examples/own-routes/README.md', /^npm start -- /);
const REQUESTS = shownCommands('examples/own-routes/README.md', /^curl /);

test('the command runs the setups of the example, whose README shows what comes back', async () => {
  await using portico = await startConfigExample(SERVE);
  const { rest = '', webhook = '' } = portico.urls;
  await checkShownRequests(REQUESTS, { rest, webhook });
  using connection = await keepConnection(rest);
  // The key is asked for however often a connection is used.
  for (let i = 0; i < 5; i++) {
    assert.equal((await connection.ask('/users/1')).status, 401);
    assert.equal((await connection.ask('/users/1', { headers: { 'x-api-key': 'demo-key' } })).status, 200);
  }
  portico.child.kill('SIGTERM');
  assert.equal(await portico.exited(), 0);
});

const hot: Readonly<Record<string, readonly [path: string, asked: Asked]>> = {
  graphql: [
    '/graphql',
    { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"query":"{ hello }"}' },
  ],
  rest: ['/users/1', {}],
  management: ['/actuator/health', {}],
  webhook: ['/webhook', { method: 'POST', body: '{"event":"new_commit"}' }],
};

test('a hook of a setup sees every request of its door, those of hot routes too', async () => {
  const setup = `setup: async (app) => {
    await null;
    app.addHook('onRequest', async (_request, reply) => { reply.header('x-mine', 'yes'); });
  }`;
  const module = `export default { ${Object.keys(hot).map((door) => `${door}: { ${setup} }`)} };`;
  await using service = await startTestService({ module });
  await service.listen();
  for (const [door, [path, asked]] of Object.entries(hot)) {
    using connection = await keepConnection(service.urls[door] ?? '');
    for (let i = 0; i < 3; i++) {
      const reply = await connection.ask(path, asked);
      assert.equal(reply.status, 200, door);
      assert.equal(reply.headers['x-mine'], 'yes', door);
    }
  }
});

test("routes of a setup are listed, measured and logged like the door's own, and fail like them", async () => {
  const module = `export default { management: { include: ['mappings', 'metrics'] }, rest: { setup(app) {
    app.post('/mine/:id', async (request) => ({ id: request.params.id, body: request.body }));
    app.get('/broken', async () => { throw new Error('secret-12'); });
  } } };`;
  await using service = await startTestService({ module, env: { LOG_REQUESTS: 'true' } });
  await service.listen();
  const { rest, management } = service.urls;
  const headers = { 'content-type': 'application/json' };
  const reply = await fetch(`${rest}/mine/7`, { method: 'POST', headers, body: '{"a":1}' });
  assert.deepEqual(await reply.json(), { id: '7', body: { a: 1 } });
  assert.match(reply.headers.get('x-request-id') ?? '', /./);
  const broken = await fetch(`${rest}/broken`);
  assert.equal(broken.status, 500);
  const { status, message } = (await broken.json()) as Record<string, unknown>;
  assert.equal(status, 'error');
  assert.doesNotMatch(String(message), /secret-12/);

  const mappings = await (await fetch(`${management}/actuator/mappings`)).text();
  assert.match(mappings, /\/mine\/:id/);
  const query = 'tag=uri:/mine/:id&tag=method:POST';
  const metric = await (await fetch(`${management}/actuator/metrics/http.server.requests?${query}`)).text();
  assert.match(metric, /"statistic":"COUNT","value":1/);
  const logged = service.log.entries.find(({ msg, path }) => msg === 'request' && path === '/mine/7');
  assert.equal(logged?.status, 200);
});

test("a route of a setup that is more specific gets its requests, all others stay the door's", async () => {
  const module = `export default { rest: { setup: (app) => void app.get('/users/me', () => 'me') } };`;
  await using service = await startTestService({ module });
  await service.listen();
  using connection = await keepConnection(service.urls.rest ?? '');
  for (let i = 0; i < 3; i++) {
    assert.equal((await connection.ask('/users/me')).body, 'me');
    assert.match((await connection.ask('/users/1')).body, /User not found/);
    assert.match((await connection.ask('/users')).body, /"data":\[\]/);
  }
});

/** Code of a door's setup, and what the start says of it. */
const wrong: readonly (readonly [door: string, code: string, message: RegExp])[] = [
  ['rest', `app.get('/users', () => 1)`, /rest\.setup adds GET \/users, which the door has already/],
  [
    'graphql',
    `app.post('/graphql', () => 1)`,
    /graphql\.setup adds POST \/graphql, which the door has already/,
  ],
  ['graphql', `app.get('/', () => 1)`, /graphql\.setup adds GET \/, which the door has already/],
  [
    'management',
    `app.get('/livez', () => 1)`,
    /management\.setup adds GET \/livez, which the door has already/,
  ],
  [
    'management',
    `app.get('/actuator/mine', () => 1)`,
    /management\.setup adds \/actuator\/mine below \/actuator/,
  ],
  [
    'webhook',
    `app.post('/webhook', () => 1)`,
    /webhook\.setup adds POST \/webhook, which the door has already/,
  ],
  [
    'rest',
    `throw new TypeError('not today')`,
    /rest\.setup failed: TypeError: not today \(.*portico\.config\.ts:1:\d+\)$/,
  ],
];
for (const [door, code, message] of wrong) {
  test(`no door listens when a setup fails: ${door}, ${code}`, async () => {
    const module = `export default { ${door}: { setup: async (app) => { await null; ${code}; } } };`;
    await using service = await startTestService({ module });
    await assert.rejects(service.listen(), { code: 'DOOR_SETUP', message });
    const listened = service.log.entries.filter(({ msg }) => String(msg).endsWith('door listens'));
    assert.deepEqual(listened, []);
  });
}

test('the command ends with the reason of a setup that fails', async () => {
  await using folder = await temporaryFolder();
  const module = `export default { webhook: { setup() { throw new Error('no queue'); } } };`;
  await writeFile(join(folder.path, 'portico.config.ts'), module);
  await using portico = startPortico({ cwd: folder.path });
  assert.equal(await portico.exited(), 1);
  assert.equal(
    portico.stderr,
    'portico: portico.config.ts: webhook.setup failed: Error: no queue (portico.config.ts:1:45)\n',
  );
});
