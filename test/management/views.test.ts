import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTestService, type TestService } from '../support/service.ts';

// What the management door of a whole service shows of the other doors.

const ALL = { MANAGEMENT_INCLUDE: '*', MANAGEMENT_SHOW_VALUES: 'always' };

async function read(service: TestService, path: string) {
  const response = await fetch(`${service.urls.management}/actuator${path}`);
  assert.equal(response.status, 200, path);
  return JSON.parse(await response.text());
}

test('every door has a logger, and its level is that of the door', async () => {
  await using service = await startTestService({ env: ALL });
  await service.listen();
  const { loggers } = await read(service, '/loggers');
  assert.deepEqual(Object.keys(loggers).sort(), [
    'ROOT',
    'audit',
    'graphql',
    'inbox',
    'management',
    'rest',
    'webhook',
  ]);
  const set = (name: string, configuredLevel: string | null) =>
    fetch(`${service.urls.management}/actuator/loggers/${name}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ configuredLevel }),
    });
  const { doors, log } = service.current;
  assert.equal((await set('rest', 'TRACE')).status, 204);
  assert.equal(doors.rest?.log.level, 'trace');
  assert.equal(doors.graphql?.log.level, 'info');
  assert.equal(log.level, 'info');
  doors.rest?.log.trace('seen');
  doors.graphql?.log.trace('unseen');
  const traced = service.log.entries.filter(({ level }) => level === 'trace');
  assert.deepEqual(
    traced.map(({ logger, msg }) => [logger, msg]),
    [['rest', 'seen']],
  );
  await set('ROOT', 'ERROR');
  assert.deepEqual([log.level, doors.graphql?.log.level, doors.rest?.log.level], ['error', 'error', 'trace']);
});

test('the mappings are the routes of every door', async () => {
  await using service = await startTestService({ env: ALL });
  await service.listen();
  const { dispatcherServlets } = (await read(service, '/mappings')).contexts.portico.mappings;
  const predicates = (door: string) =>
    dispatcherServlets[door].map(({ predicate }: { readonly predicate: string }) => predicate);
  assert.deepEqual(Object.keys(dispatcherServlets), ['graphql', 'rest', 'webhook', 'management']);
  assert.deepEqual(predicates('rest'), [
    '{GET, HEAD, POST [/users]}',
    '{GET, HEAD [/users/:id]}',
    '{PUT [/update/:id]}',
    '{DELETE [/delete/:id]}',
  ]);
  assert.ok(predicates('webhook').includes('{POST [/webhook]}'));
  assert.ok(predicates('graphql').some((text: string) => text.endsWith('[/graphql]}')));
  const management = predicates('management');
  assert.ok(management.includes('{GET, HEAD, POST [/actuator/loggers/:name]}'));
  assert.ok(management.includes('{GET, HEAD [/livez]}'));
  assert.ok(!management.some((text: string) => /PATCH|\*\]/.test(text) && !text.includes('health')));
});

test('exchanges of all doors are recorded while somebody can look at them', async () => {
  await using service = await startTestService({ env: ALL });
  await service.listen();
  const { rest, graphql, webhook } = service.urls;
  await fetch(`${rest}/users`);
  await fetch(`${graphql}/graphql?query={hello}`);
  await fetch(`${webhook}/webhook`, { method: 'POST', body: '{"event":"x","data":1}' });
  const { exchanges } = await read(service, '/httpexchanges');
  assert.deepEqual(
    exchanges.map(({ request, response }: { request: { uri: string }; response: { status: number } }) => [
      new URL(request.uri).pathname,
      response.status,
    ]),
    [
      ['/webhook', 200],
      ['/graphql', 200],
      ['/users', 200],
    ],
  );
  assert.equal(
    (await read(service, '/httpexchanges')).exchanges.length,
    4,
    'that of the management door too',
  );
});

test('what is off unless it is included', async () => {
  await using service = await startTestService();
  await service.listen();
  const { _links } = await read(service, '');
  assert.deepEqual(
    [...new Set(Object.keys(_links).map((name) => name.split('-')[0]))],
    ['self', 'health', 'info', 'metrics', 'env'],
  );
});

test('options are shown with the values that hold', async () => {
  await using service = await startTestService({
    env: { ...ALL, PROFILES: 'a,b', WEBHOOK_SECRET: 'canary' },
  });
  await service.listen();
  const { beans } = (await read(service, '/configprops')).contexts.portico;
  assert.deepEqual(beans.common.properties.profiles, ['a', 'b']);
  assert.deepEqual(beans.common.inputs.profiles, {
    value: ['a', 'b'],
    origin: 'System Environment Property "PROFILES"',
  });
  assert.equal(beans.webhook.properties.secret, '******');
  assert.equal((await read(service, '/env/profiles')).property.source, 'systemEnvironment');
});

test('access and trusted proxies follow the configuration', async () => {
  await using service = await startTestService({
    env: {
      ...ALL,
      MANAGEMENT_ACCESS: 'read-only',
      MANAGEMENT_ENDPOINT_ACCESS: 'env=none,shutdown=unrestricted',
      MANAGEMENT_MAX_ACCESS: 'read-only',
      TRUST_PROXY: 'loopback',
      HTTP_HOSTS: 'ops.example',
    },
  });
  await service.listen();
  const response = await fetch(`${service.urls.management}/actuator`, {
    headers: { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'ops.example' },
  });
  const { _links } = JSON.parse(await response.text());
  assert.equal(_links.loggers.href, 'https://ops.example/actuator/loggers');
  for (const [id, there] of Object.entries({ env: false, shutdown: false, heapdump: true, loggers: true })) {
    assert.equal(id in _links, there, id);
  }
  const allow = await fetch(`${service.urls.management}/actuator/loggers/ROOT`, { method: 'OPTIONS' });
  assert.equal(allow.headers.get('allow'), 'GET, HEAD, OPTIONS');
});
