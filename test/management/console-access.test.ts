import assert from 'node:assert/strict';
import { request } from 'node:http';
import { networkInterfaces } from 'node:os';
import { test } from 'node:test';
import { builtPage, readManifest } from '../../src/http/pages.ts';
import { rawHttp } from '../support/connections.ts';
import { startTestService, type TestService } from '../support/service.ts';

type Headers = Readonly<Record<string, string>>;

const ACT: Headers = { 'x-portico-console': '1', 'content-type': 'application/json' };
const LEVEL = JSON.stringify({ configuredLevel: 'debug' });

async function start(env: Headers = {}): Promise<TestService> {
  const service = await startTestService({ env });
  await service.listen();
  return service;
}

/** Asks with any headers, Host too, which `fetch` does not send. */
function ask(
  service: TestService,
  path: string,
  { method = 'GET', headers = {}, body }: { method?: string; headers?: Headers; body?: string } = {},
): Promise<{ status: number; text: string; headers: Readonly<Record<string, unknown>> }> {
  const { promise, resolve, reject } = Promise.withResolvers<Awaited<ReturnType<typeof ask>>>();
  const url = `${service.urls.management}/actuator${path}`;
  const asked = request(url, { method, headers: { connection: 'close', ...headers } }, async (response) => {
    const text = Buffer.concat(await response.toArray()).toString();
    resolve({ status: response.statusCode ?? 0, text, headers: response.headers });
  });
  asked.on('error', reject).end(body);
  return promise;
}

const changeLevel = (service: TestService, headers: Headers) =>
  ask(service, '/console/api/loggers/rest', { method: 'POST', headers, body: LEVEL });
const basic = (name: string) => ({ authorization: `Basic ${btoa(`${name}:password`)}` });

test('by default the console is there and the discovery document says what it said', async () => {
  await using service = await start();
  const page = await ask(service, '/console', { headers: { accept: 'text/html' } });
  assert.equal(page.status, 200);
  assert.match(String(page.headers['content-security-policy']), /default-src 'none'/);
  assert.doesNotMatch(String(page.headers['content-security-policy']), /unsafe/);
  const { _links } = JSON.parse((await ask(service, '')).text);
  assert.deepEqual(
    new Set(Object.keys(_links).map((name) => name.split('-')[0])),
    new Set(['self', 'health', 'info', 'metrics', 'env']),
  );
  assert.equal((await ask(service, '/loggers')).status, 404, 'not exposed beside the console');
  assert.equal((await ask(service, '/console/api/loggers')).status, 200);
  assert.match((await ask(service, '', { headers: { accept: 'text/html' } })).text, /href="[^"]*\/console"/);
});

test('the files of the page are its own and never go stale', async () => {
  await using service = await start();
  const manifest = readManifest(builtPage('console'));
  const name = manifest?.script ?? assert.fail('built by npm ci');
  const file = await ask(service, `/console/assets/${name}`, { headers: { 'accept-encoding': 'gzip' } });
  assert.deepEqual([file.status, file.headers['content-encoding']], [200, 'gzip']);
  assert.match(String(file.headers['cache-control']), /immutable/);
  for (const wrong of ['manifest.json', '..%2fmanifest.json', `${name}.gz`]) {
    assert.equal((await ask(service, `/console/assets/${wrong}`)).status, 404, wrong);
  }
});

test('a service without the database offers what it has', async () => {
  await using service = await start({ INTERFACES: 'management,graphql' });
  const about = JSON.parse((await ask(service, '/console/api/about')).text);
  for (const missing of ['deliveries', 'users', 'test-deliveries']) {
    assert.ok(!about.endpoints.includes(missing), missing);
    assert.equal((await ask(service, `/console/api/${missing}`)).status, 404);
  }
  assert.deepEqual(
    about.doors.map(({ name }: { name: string }) => name),
    ['graphql', 'management'],
  );
  assert.equal(about.database, null);
});

test('what is excluded or bound to less access is so in the console too', async () => {
  await using service = await start({
    MANAGEMENT_EXCLUDE: 'threaddump',
    MANAGEMENT_ENDPOINT_ACCESS: 'loggers=read-only,history=none',
  });
  assert.equal((await ask(service, '/console/api/threaddump')).status, 404);
  assert.equal((await ask(service, '/console/api/history')).status, 404);
  assert.equal((await ask(service, '/console/api/shutdown', { method: 'POST', headers: ACT })).status, 404);
  assert.equal((await changeLevel(service, ACT)).status, 405);
  const about = JSON.parse((await ask(service, '/console/api/about')).text);
  assert.ok(!about.endpoints.includes('threaddump') && about.endpoints.includes('deliveries'));
});

test('a list of the own without the console, and the access none, take it away', async () => {
  for (const env of [{ MANAGEMENT_INCLUDE: 'health' }, { MANAGEMENT_ENDPOINT_ACCESS: 'console=none' }]) {
    await using service = await start(env);
    assert.equal((await ask(service, '/console')).status, 404);
    assert.equal((await ask(service, '/console/api/about')).status, 404);
  }
});

test('with read-only access there is no action at all', async () => {
  await using service = await start({ MANAGEMENT_ENDPOINT_ACCESS: 'console=read-only' });
  assert.equal(JSON.parse((await ask(service, '/console/api/about')).text).actions, false);
  assert.equal((await changeLevel(service, ACT)).status, 405);
  const sent = { method: 'POST', headers: ACT, body: '{"source":"","event":"new_commit"}' };
  assert.equal((await ask(service, '/console/api/test-deliveries', sent)).status, 405);
});

test('a name that is not the door’s own gets nothing', async () => {
  await using service = await start({ HTTP_HOSTS: 'ops.example.org' });
  const { port } = new URL(service.urls.management ?? '');
  for (const [host, status] of [
    [`evil.example:${port}`, 403],
    ['localhost.evil.example', 403],
    [`localhost:${port}`, 200],
    [`127.0.0.1:${port}`, 200],
    [`[::1]:${port}`, 200],
    ['ops.example.org', 200],
  ] as const) {
    for (const path of ['/console', '/console/api/about']) {
      assert.equal((await ask(service, path, { headers: { host } })).status, status, host);
    }
  }
});

test('an action needs the header and the same origin', async () => {
  await using service = await start();
  const { origin } = new URL(service.urls.management ?? '');
  const refused: readonly Headers[] = [
    { 'content-type': 'application/json' },
    { ...ACT, origin: 'http://evil.example' },
    { ...ACT, origin: 'null' },
    { ...ACT, origin: 'http://127.0.0.1:1' },
    { ...ACT, origin, 'sec-fetch-site': 'cross-site' },
    { ...ACT, origin, 'sec-fetch-site': 'same-site' },
  ];
  for (const headers of refused) {
    assert.equal((await changeLevel(service, headers)).status, 403, JSON.stringify(headers));
  }
  assert.equal((await changeLevel(service, { ...ACT, origin, 'sec-fetch-site': 'same-origin' })).status, 204);
  assert.equal((await changeLevel(service, ACT)).status, 204, 'a program');
});

test('an unsecured console is for this machine alone, and says how to secure it', async () => {
  await using service = await start();
  const headers = { 'x-forwarded-for': '203.0.113.7', accept: 'text/html' };
  const page = await ask(service, '/console', { headers });
  assert.equal(page.status, 403);
  assert.match(page.text, /MANAGEMENT_USER/);
  for (const [name, value] of Object.entries({
    via: '1.1 proxy',
    'x-forwarded-host': 'localhost',
    'x-forwarded-proto': 'http',
    'cf-connecting-ip': '127.0.0.1',
    'true-client-ip': '127.0.0.1',
    'x-client-ip': '127.0.0.1',
  })) {
    const headers = { [name]: value };
    assert.equal((await ask(service, '/console/api/about', { headers })).status, 403, name);
    assert.equal((await changeLevel(service, { ...ACT, ...headers })).status, 403, name);
  }
});

const outward = Object.values(networkInterfaces())
  .flat()
  .find((each) => each?.family === 'IPv4' && !each.internal)?.address;

test('an unsecured console that listens everywhere refuses a client from elsewhere', {
  skip: outward === undefined && 'this machine has no address but its own',
}, async () => {
  await using service = await start({ HOST: '0.0.0.0' });
  const { port } = new URL(service.urls.management ?? '');
  const from = async (address: string, path: string) => {
    const response = await fetch(`http://${address}:${port}/actuator${path}`, {
      headers: { accept: 'text/html' },
    });
    return [response.status, /MANAGEMENT_USER/.test(await response.text())];
  };
  assert.deepEqual(await from(String(outward), '/console'), [403, true]);
  assert.deepEqual((await from(String(outward), '/console/api/about'))[0], 403);
  assert.deepEqual((await from(String(outward), '/console/api/users'))[0], 403);
  assert.deepEqual((await from(String(outward), '/health'))[0], 200, 'the door itself stays as it was');
  assert.deepEqual(await from('127.0.0.1', '/console'), [200, false]);
});

test('behind a proxy that is trusted the client counts, and every address that is named', async () => {
  await using service = await start({ TRUST_PROXY: 'loopback' });
  const from = async (client: string, more: Headers = {}) =>
    (await ask(service, '/console', { headers: { 'x-forwarded-for': client, ...more } })).status;
  assert.equal(await from('203.0.113.7'), 403);
  assert.equal(await from('127.0.0.1'), 200);
  assert.equal(
    await from('127.0.0.1', { 'x-forwarded-host': 'localhost', 'x-forwarded-proto': 'http' }),
    200,
  );
  assert.equal(await from('127.0.0.1', { 'x-forwarded-host': 'evil.example' }), 403);
  assert.equal(await from('127.0.0.1', { 'cf-connecting-ip': '203.0.113.7' }), 403);
  assert.equal(
    (await ask(service, '/console', { headers: { 'x-forwarded-host': 'localhost' } })).status,
    403,
  );
  // Another one than those that are trusted.
  await using other = await start({ TRUST_PROXY: '10.0.0.1' });
  assert.equal((await ask(other, '/console')).status, 200);
  const headers = { 'x-forwarded-for': '127.0.0.1' };
  assert.equal((await ask(other, '/console', { headers })).status, 403);
});

/** Every way to the data of other doors, and the statuses of each. */
async function reachOthers(service: TestService, more: Headers = {}): Promise<readonly number[]> {
  const body = '{"name":"Eve","email":"e@b"}';
  const test = '{"source":"","event":"new_commit"}';
  const asked: readonly (readonly [path: string, method: string, body?: string])[] = [
    ['/users', 'GET'],
    ['/users', 'HEAD'],
    ['/users/1', 'GET'],
    ['/users', 'POST', body],
    ['/users/1', 'POST', body],
    ['/users/1', 'DELETE'],
    ['/deliveries', 'GET'],
    ['/deliveries/1', 'GET'],
    ['/deliveries/1', 'POST', '{"action":"replay"}'],
    ['/test-deliveries', 'GET'],
    ['/test-deliveries', 'POST', test],
  ];
  const statuses = new Set<number>();
  for (const [path, method, sent] of asked) {
    const headers = { ...ACT, ...more };
    const options = { method, headers, ...(sent !== undefined && { body: sent }) };
    const { status, text } = await ask(service, `/console/api${path}`, options);
    statuses.add(status);
    if (status === 403 && method !== 'HEAD')
      assert.match(text, /Set MANAGEMENT_USER and MANAGEMENT_PASSWORD to open them/, `${method} ${path}`);
  }
  return [...statuses];
}

test('while other doors ask for credentials and this one does not, their data are closed here', async () => {
  const sources = `export default { webhook: { sources: { hub: { scheme: 'github', secrets: 'secret-of-the-hub' } } } };`;
  for (const [env, module] of [
    [{ API_REQUIRED: 'all' }, undefined],
    [{ API_REQUIRED: 'write' }, undefined],
    [{ WEBHOOK_SECRET: 'sesame' }, undefined],
    [{ WEBHOOK_SECRET: 'sesame', INTERFACES: 'rest,management' }, undefined],
    [{}, sources],
  ] as const) {
    await using service = await startTestService({ env, ...(module !== undefined && { module }) });
    await service.listen();
    const what = JSON.stringify(env);
    // Without the webhook door there are no test deliveries.
    const missing = 'INTERFACES' in env ? [404] : [];
    assert.deepEqual(await reachOthers(service), [403, ...missing], what);
    const about = JSON.parse((await ask(service, '/console/api/about')).text);
    assert.deepEqual(
      ['users', 'deliveries', 'test-deliveries'].filter((id) => about.endpoints.includes(id)),
      [],
    );
    assert.match(about.closed.users, /MANAGEMENT_USER/, what);
    // What is this door's own stays open.
    assert.equal((await ask(service, '/console')).status, 200);
    assert.equal((await ask(service, '/console/api/env')).status, 200);
    assert.equal((await changeLevel(service, ACT)).status, 204);
    const live = await rawHttp(service.urls.management ?? '', [
      'GET /actuator/console/api/live?topics=deliveries HTTP/1.1\r\nHost: localhost\r\n\r\n',
    ]);
    assert.equal(live.status, 200);
    assert.doesNotMatch(live.text, /newest/);
  }
});

test('they are open to who logs in, and where no door asks for credentials', async () => {
  const secured = { MANAGEMENT_USER: 'ann', MANAGEMENT_PASSWORD: 'password' };
  await using service = await start({ API_REQUIRED: 'all', WEBHOOK_SECRET: 'sesame', ...secured });
  const statuses = await reachOthers(service, basic('ann'));
  assert.ok(!statuses.includes(403) && statuses.includes(200), statuses.join());
  assert.deepEqual(await reachOthers(service), [401]);
  await using open = await start();
  const answered = await reachOthers(open);
  assert.ok(!answered.includes(403) && answered.includes(200), answered.join());
  assert.deepEqual(JSON.parse((await ask(open, '/console/api/about')).text).closed, {});
});

test('a page of another site opens no event stream of the console', async () => {
  await using service = await start();
  for (const page of ['Sec-Fetch-Site: cross-site', 'Origin: http://evil.example']) {
    const head = `GET /actuator/console/api/live?topics=log HTTP/1.1\r\nHost: localhost\r\n${page}\r\n\r\n`;
    assert.equal((await rawHttp(service.urls.management ?? '', [head])).status, 403, page);
  }
});

test('a secured console needs credentials, and actions the role', async () => {
  const module = `export default { management: { users: [
    { user: 'reader', password: 'password', roles: ['viewer'] },
    { user: 'doer', password: 'password', roles: ['viewer', 'operator'] },
  ] } };`;
  const env = { MANAGEMENT_CONSOLE_ROLE: 'operator' };
  await using service = await startTestService({ module, env });
  await service.listen();
  assert.equal((await ask(service, '/console')).status, 401);
  const remote = { ...basic('reader'), 'x-forwarded-for': '203.0.113.7' };
  assert.equal((await ask(service, '/console', { headers: remote })).status, 200);
  assert.equal((await changeLevel(service, { ...ACT, ...basic('reader') })).status, 403);
  assert.equal((await changeLevel(service, { ...ACT, ...basic('doer') })).status, 204);
  const actions = async (name: string) =>
    JSON.parse((await ask(service, '/console/api/about', { headers: basic(name) })).text).actions;
  assert.deepEqual([await actions('reader'), await actions('doer')], [false, true]);
});
