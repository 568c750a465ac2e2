import assert from 'node:assert/strict';
import { test } from 'node:test';
import Fastify, { type InjectOptions } from 'fastify';
import { HealthRegistry, Readiness } from '../telemetry/health.ts';
import { Metrics } from '../telemetry/metrics.ts';
import { management } from './management.ts';
import type { ManagementOptions } from './options.ts';

const V3 = 'application/vnd.spring-boot.actuator.v3+json';
const ENDPOINTS = ['health', 'info', 'metrics', 'env', 'hello'];
const SECURED = {
  users: [
    { user: 'ann', password: 'pw', roles: ['ops'] },
    { user: 'bob', password: 'pw', roles: ['dev'] },
  ],
  role: 'ops',
  // Every path is tried with wrong passwords.
  maxFailedLogins: 0,
};

function optionsWith(changes: Partial<ManagementOptions> = {}): ManagementOptions {
  const property = (value: unknown, secret = false) => ({ value, origin: 'default', secret });
  return {
    basePath: '/actuator',
    include: ['*'],
    exclude: [],
    showValues: 'never',
    users: [],
    role: undefined,
    build: { version: '1.2.3', artifact: 'portico', name: 'Portico' },
    health: new HealthRegistry([{ name: 'mine', check: () => 0 }]),
    readiness: new Readiness(),
    metrics: new Metrics(),
    environment: {
      activeProfiles: ['dev'],
      propertySources: [
        { name: 'flags', properties: new Map([['rest.port', property(8000)]]) },
        { name: 'defaults', properties: new Map([['host', property('h', true)]]) },
      ],
    },
    endpoints: [{ id: 'hello', read: () => 'hello there' }],
    ...changes,
  };
}

async function start(changes: Partial<ManagementOptions> = {}) {
  const app = Fastify();
  await app.register(management, optionsWith(changes)).ready();
  return app;
}

const basic = (user: string, password: string) => ({
  authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
});

test('the four endpoints have the shapes of the contract', async () => {
  const metrics = new Metrics();
  metrics.counter('b.two', { description: 'x' });
  metrics.counter('a.one', { description: 'x' });
  await using app = await start({ metrics });
  const read = async (path: string) => {
    const response = await app.inject(`/actuator/${path}`);
    assert.equal(response.statusCode, 200);
    assert.equal(response.headers['content-type'], V3);
    assert.equal(response.headers['cache-control'], 'no-store');
    assert.equal(response.headers['x-content-type-options'], 'nosniff');
    return response.json();
  };
  assert.deepEqual(await read('health'), {
    status: 'UP',
    components: { mine: { status: 'UP' } },
    groups: ['liveness', 'readiness'],
  });
  assert.deepEqual(await read('info'), {
    build: { version: '1.2.3', artifact: 'portico', name: 'Portico' },
  });
  assert.deepEqual(await read('metrics'), { names: ['a.one', 'b.two'] });
  assert.deepEqual(await read('env'), {
    activeProfiles: ['dev'],
    defaultProfiles: [],
    propertySources: [
      { name: 'flags', properties: { 'rest.port': { value: '******', origin: 'default' } } },
      { name: 'defaults', properties: { host: { value: '******', origin: 'default' } } },
    ],
  });
  metrics.gauge('a.late', { description: 'x' }, () => 1);
  assert.deepEqual(await read('metrics'), { names: ['a.late', 'a.one', 'b.two'] });
});

test('env shows values when told to, but not what is marked secret', async () => {
  await using app = await start({ showValues: 'always' });
  const { propertySources } = (await app.inject('/actuator/env')).json();
  assert.equal(propertySources[0].properties['rest.port'].value, 8000);
  assert.equal(propertySources[1].properties.host.value, '******');
});

test('DOWN is 503 with the code of the check among the details', async () => {
  await using app = await start({ health: new HealthRegistry([{ name: 'mine', check: () => 3 }]) });
  const response = await app.inject('/actuator/health');
  assert.equal(response.statusCode, 503);
  assert.deepEqual(response.json(), {
    status: 'DOWN',
    components: { mine: { status: 'DOWN', details: { code: 3 } } },
    groups: ['liveness', 'readiness'],
  });
});

test('a check that hangs does not hang the health endpoint', async () => {
  const hanging = { name: 'hangs', check: () => new Promise<never>(() => {}) };
  await using app = await start({ health: new HealthRegistry([hanging], { timeoutMs: 5 }) });
  for (const expected of [/no answer within 5 ms/, /has been hanging for/]) {
    const response = await app.inject('/actuator/health');
    assert.equal(response.statusCode, 503);
    assert.match(response.json().components.hangs.details.error, expected);
  }
});

test('the media type follows Accept', async () => {
  await using app = await start();
  for (const accept of ['application/json', 'application/vnd.spring-boot.actuator.v2+json', V3]) {
    for (const path of ['', '/health', '/info', '/metrics', '/env']) {
      const response = await app.inject({ url: `/actuator${path}`, headers: { accept } });
      assert.equal(response.headers['content-type'], accept);
    }
  }
  const unwanted = await app.inject({ url: '/actuator/info', headers: { accept: 'image/png' } });
  assert.equal(unwanted.statusCode, 200);
  assert.equal(unwanted.headers['content-type'], V3);
});

test('only exposed endpoints exist', async () => {
  await using app = await start({ include: ['Health', 'info', 'HELLO'], exclude: ['in-fo'] });
  const statuses = await Promise.all(
    ENDPOINTS.map(async (id) => (await app.inject(`/actuator/${id}`)).statusCode),
  );
  assert.deepEqual(statuses, [200, 404, 404, 404, 200]);
  const links = (await app.inject('/actuator')).json()._links;
  assert.deepEqual(Object.keys(links), ['self', 'health', 'health-path', 'hello']);
});

test('the base path lists absolute links for the host that was asked', async () => {
  await using app = await start({ include: ['health'] });
  const links = async (host: string) =>
    (await app.inject({ url: '/actuator?x=1', headers: { host } })).json()._links;
  assert.deepEqual(await links('ops.example:8080'), {
    self: { href: 'http://ops.example:8080/actuator', templated: false },
    health: { href: 'http://ops.example:8080/actuator/health', templated: false },
    'health-path': { href: 'http://ops.example:8080/actuator/health/{*path}', templated: true },
  });
  assert.equal((await links('[::1]:8080')).self.href, 'http://[::1]:8080/actuator');
  for (const host of ['a"b', 'a/b', 'u@h', 'a b', '{origin}', '']) {
    assert.match((await links(host)).self.href, /^http:\/\/localhost:\d+\/actuator$/);
  }
});

test('other base paths, and a prefix of the application', async () => {
  await using root = await start({ basePath: '/' });
  assert.equal((await root.inject('/health')).statusCode, 200);
  assert.equal((await root.inject('/')).statusCode, 404);
  assert.equal((await root.inject('/actuator/health')).statusCode, 404);

  await using deep = Fastify();
  await deep.register(management, { ...optionsWith({ basePath: '/ops/v1/' }), prefix: '/inner' });
  const { _links } = (await deep.inject('/inner/ops/v1')).json();
  const { pathname } = new URL(_links.health.href);
  assert.equal(pathname, '/inner/ops/v1/health');
  assert.equal((await deep.inject(pathname)).statusCode, 200);
  assert.equal((await deep.inject('/inner/livez')).statusCode, 200);
});

test('GET and HEAD only, OPTIONS says so; anything else is 405 and no body is looked at', async () => {
  await using app = await start();
  const paths = ['/actuator', ...ENDPOINTS.map((id) => `/actuator/${id}`), '/livez'];
  for (const url of paths) {
    const get = await app.inject(url);
    const head = await app.inject({ method: 'HEAD', url });
    assert.equal(head.statusCode, 200);
    assert.equal(head.body, '');
    assert.equal(head.headers['content-length'], get.headers['content-length']);
    assert.equal(head.headers['content-type'], get.headers['content-type']);
    const options = await app.inject({ method: 'OPTIONS', url });
    assert.equal(options.statusCode, 200);
    assert.equal(options.headers.allow, 'GET, HEAD, OPTIONS');
    assert.equal(options.body, '');
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'TRACE'] as const) {
      const hasBody = method.startsWith('P');
      const response = await app.inject({
        method,
        url,
        ...(hasBody ? { headers: { 'content-type': 'application/json' }, payload: '{' } : {}),
      } as InjectOptions);
      assert.equal(response.statusCode, 405, `${method} ${url}`);
      assert.equal(response.headers.allow, 'GET, HEAD, OPTIONS');
      assert.equal(response.json().error, 'Method Not Allowed');
    }
  }
  // Fastify has no routes for it.
  const exotic = await app.inject({
    method: 'PROPFIND',
    url: '/actuator/info?x',
  } as unknown as InjectOptions);
  assert.equal(exotic.statusCode, 405);
  assert.equal(exotic.headers.allow, 'GET, HEAD, OPTIONS');
});

test('unknown paths and trailing slashes are 404 in JSON', async () => {
  await using app = await start();
  for (const path of ['/', '/nope', '/health/', '/health/db', '/HEALTH', '/*', `/${'x'.repeat(500)}`]) {
    for (const method of ['GET', 'POST', 'PROPFIND']) {
      const response = await app.inject({ method, url: `/actuator${path}` } as InjectOptions);
      assert.equal(response.statusCode, 404, `${method} ${path}`);
      assert.deepEqual(response.json(), {
        status: 404,
        error: 'Not Found',
        message: 'There is no such endpoint',
      });
      assert.match(String(response.headers['content-type']), /^application\/json\b/);
      assert.equal(response.headers['x-content-type-options'], 'nosniff');
      assert.equal(response.headers['cache-control'], 'no-store');
    }
  }
});

for (const basePath of ['/actuator', '/']) {
  const prefix = basePath === '/' ? '' : basePath;

  test(`secured at ${basePath}: every path under it needs credentials, known or not`, async () => {
    await using app = await start({ ...SECURED, basePath });
    const paths = [...ENDPOINTS.map((id) => `/${id}`), '', '/', '/nope', '/health/', '/a/b/c'];
    for (const path of paths) {
      const url = `${prefix}${path}` || '/';
      for (const method of ['GET', 'HEAD', 'POST', 'OPTIONS', 'PROPFIND']) {
        const ask = (headers: Record<string, string>) =>
          app.inject({ method, url, headers } as InjectOptions);
        for (const headers of [{}, basic('ann', 'wrong'), basic('eve', 'pw'), { authorization: 'Basic x' }]) {
          const response = await ask(headers);
          assert.equal(response.statusCode, 401, `${method} ${url}`);
          assert.equal(response.headers['www-authenticate'], 'Basic realm="portico", charset="UTF-8"');
          assert.equal(response.headers['cache-control'], 'no-store');
          if (method !== 'HEAD') assert.equal(response.json().error, 'Unauthorized');
        }
        const wrongRole = await ask(basic('bob', 'pw'));
        assert.equal(wrongRole.statusCode, 403, `${method} ${url}`);
        assert.equal(wrongRole.headers['www-authenticate'], undefined);
        if (method !== 'HEAD') assert.equal(wrongRole.json().error, 'Forbidden');
        assert.ok(![401, 403].includes((await ask(basic('ann', 'pw'))).statusCode), `${method} ${url}`);
      }
    }
    for (const id of ENDPOINTS) {
      const response = await app.inject({ url: `${prefix}/${id}`, headers: basic('ann', 'pw') });
      assert.equal(response.statusCode, 200);
    }
    const health = await app.inject({ url: `${prefix}/health`, headers: basic('ann', 'pw') });
    assert.ok('components' in health.json());
    assert.equal((await app.inject('/livez')).statusCode, 200);
    assert.equal((await app.inject('/readyz')).statusCode, 503);
  });
}

test('without a required role every user will do', async () => {
  await using app = await start({ ...SECURED, role: undefined });
  for (const user of ['ann', 'bob']) {
    const response = await app.inject({ url: '/actuator/env', headers: basic(user, 'pw') });
    assert.equal(response.statusCode, 200);
  }
});

test('the probes follow the process, not its checks', async () => {
  const readiness = new Readiness();
  const health = new HealthRegistry([{ name: 'mine', check: () => 1 }]);
  await using app = await start({ readiness, health });
  const probe = async (url: string) => {
    const response = await app.inject(url);
    return [response.statusCode, response.body];
  };
  const up = [200, '{"status":"UP"}'];
  const out = [503, '{"status":"OUT_OF_SERVICE"}'];
  assert.deepEqual(await probe('/readyz'), out);
  readiness.accept();
  assert.deepEqual(await probe('/readyz'), up);
  readiness.refuse();
  assert.deepEqual(await probe('/readyz'), out);
  assert.deepEqual(await probe('/livez'), up);
});
