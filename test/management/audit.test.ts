import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { openDatabase } from '../../src/sql/open.ts';
import { keepConnection } from '../support/connections.ts';
import { postgresUrl, withoutPostgres } from '../support/databases.ts';
import { runCommand } from '../support/run-command.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';

interface Shown {
  readonly timestamp: string;
  readonly principal: string;
  readonly type: string;
  readonly data: Readonly<Record<string, string | number>>;
}

const MODULE = `export default { webhook: { sources: { shop: { scheme: 'github', secrets: 's3cret-of-shop' } } } };`;
const admin = { authorization: `Basic ${btoa('ada:right-password')}` };
const env = {
  MANAGEMENT_INCLUDE: 'loggers,deliveries,auditevents,health',
  MANAGEMENT_ACCESS: 'unrestricted',
  MANAGEMENT_USER: 'ada',
  MANAGEMENT_PASSWORD: 'right-password',
  MANAGEMENT_MAX_FAILED_LOGINS: '2',
  WEBHOOK_SECRET: 'right-token',
};

async function events(service: TestService, query = ''): Promise<readonly Shown[]> {
  const reply = await fetch(`${service.urls.management}/actuator/auditevents${query}`, { headers: admin });
  assert.equal(reply.status, 200);
  return ((await reply.json()) as { readonly events: readonly Shown[] }).events;
}

const databases = { sqlite: undefined, ...(withoutPostgres === undefined && { postgres: postgresUrl }) };

for (const [engine, url] of Object.entries(databases)) {
  describe(`audit on ${engine}`, () => {
    const start = async (more: Readonly<Record<string, string>> = {}) => {
      const database = url === undefined ? {} : { DATABASE_URL: await url() };
      const service = await startTestService({
        env: { ...env, ...database, ...more },
        module: MODULE,
        database: 'file',
      });
      await service.listen();
      return service;
    };

    test('refusals of every door and every action are shown, and outlive a restart', async () => {
      await using service = await start();
      const { management, webhook } = service.urls;
      const json = { 'content-type': 'application/json' };
      const statusOf = async (call: Promise<Response>) => (await call).status;
      const wrong = { authorization: `Basic ${btoa('mallory:wrong')}` };
      const guess = () => statusOf(fetch(`${management}/actuator/loggers`, { headers: wrong }));
      assert.deepEqual([await guess(), await guess(), await guess()], [401, 401, 429]);
      assert.equal(await statusOf(fetch(`${management}/actuator/loggers`)), 401);
      const post = (path: string, headers: Record<string, string>, body: string) =>
        fetch(`${webhook}${path}`, { method: 'POST', headers: { ...json, ...headers }, body });
      assert.equal(await statusOf(post('/webhook', { 'x-webhook-token': 'wrong' }, '{}')), 401);
      assert.equal(
        await statusOf(post('/webhook/shop', { 'x-hub-signature-256': `sha256=${'0'.repeat(64)}` }, '{}')),
        401,
      );
      const accepted = await post('/webhook', { 'x-webhook-token': 'right-token' }, '{"event":"x"}');
      const id = accepted.headers.get('x-delivery-id') ?? '';
      const act = (path: string, body: string) =>
        statusOf(
          fetch(`${management}/actuator${path}`, { method: 'POST', headers: { ...admin, ...json }, body }),
        );
      // From an address that has failed too often only who was right before may go on, so this is another door.
      const known = await act('/loggers/rest', '{"configuredLevel":"debug"}');
      assert.equal(known, 429, 'the limit holds for the right password as well');
      await service.restart();
      const again = (path: string, body: string) =>
        statusOf(
          fetch(`${service.urls.management}/actuator${path}`, {
            method: 'POST',
            headers: { ...admin, ...json },
            body,
          }),
        );
      assert.equal(await again('/loggers/rest', '{"configuredLevel":"debug","for":"PT1S"}'), 204);
      assert.equal(await again(`/deliveries/${id}`, '{"action":"replay"}'), 409, 'nothing handles it');

      await waitFor(
        'the level change',
        async () => (await events(service, '?type=LOGGER_LEVEL_CHANGED')).length > 0,
      );
      const all = await events(service);
      assert.deepEqual(
        all.map(({ principal, type, data }) => [
          principal,
          type,
          data.door,
          data.status ?? data.endpoint,
          data.code ?? data.level,
        ]),
        [
          ['mallory', 'AUTHENTICATION_FAILURE', 'management', 401, 'UNAUTHORIZED'],
          ['mallory', 'AUTHENTICATION_FAILURE', 'management', 401, 'UNAUTHORIZED'],
          ['mallory', 'LIMIT_REACHED', 'management', 429, 'TOO_MANY_ATTEMPTS'],
          ['anonymous', 'AUTHENTICATION_FAILURE', 'management', 401, 'UNAUTHORIZED'],
          ['anonymous', 'AUTHENTICATION_FAILURE', 'webhook', 401, 'WRONG_TOKEN'],
          ['anonymous', 'AUTHENTICATION_FAILURE', 'webhook', 401, 'REFUSED'],
          ['ada', 'LIMIT_REACHED', 'management', 429, 'TOO_MANY_ATTEMPTS'],
          ['ada', 'LOGGER_LEVEL_CHANGED', 'management', 'loggers', 'debug'],
        ],
      );
      assert.equal(all[0]?.data.client, '127.0.0.1');
      assert.equal(all[0]?.data.path, '/actuator/loggers');
      assert.match(all[0]?.timestamp ?? '', /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
      assert.equal((await events(service, '?principal=mallory')).length, 3);
      assert.equal((await events(service, `?after=${all[6]?.timestamp}`)).length, 1);
      const bad = await fetch(`${service.urls.management}/actuator/auditevents?after=today`, {
        headers: admin,
      });
      assert.deepEqual([bad.status, bad.headers.get('x-error-code')], [400, 'AUDIT_QUERY']);
    });

    test('what the fast path refuses is recorded, with the client that a trusted proxy names', async () => {
      await using service = await start({ TRUST_PROXY: 'loopback' });
      let byNode = 0;
      service.current.doors.webhook?.server.on('request', () => byNode++);
      using connection = await keepConnection(service.urls.webhook ?? '');
      const headers = { 'x-forwarded-for': '10.9.9.9, 203.0.113.7', 'content-type': 'application/json' };
      const before = byNode;
      const refused = await connection.ask('/webhook', { method: 'POST', headers, body: '{}' });
      assert.equal(refused.status, 401);
      assert.equal(byNode, before, 'not the fast path');
      await waitFor('the event', async () => (await events(service)).length > 0);
      assert.deepEqual(
        (await events(service)).map(({ data }) => [data.code, data.client, data.path]),
        [['WRONG_TOKEN', '203.0.113.7', '/webhook']],
      );
    });
  });
}

test('the command line records what it does', async () => {
  await using service = await startTestService({ env, database: 'file' });
  await service.listen();
  const headers = { 'content-type': 'application/json', 'x-webhook-token': 'right-token' };
  await fetch(`${service.urls.webhook}/webhook`, {
    method: 'POST',
    headers,
    body: '{"event":"new_commit","data":{}}',
  });
  const options = { cwd: service.folder, env: { DATABASE_URL: service.databaseUrl, AUDIT_RETENTION: '1' } };
  await waitFor('the delivery to be done', async () => {
    const list = await runCommand(['deliveries', 'list', '--status', 'done', '--json'], options);
    return JSON.parse(list.stdout).items.length === 1;
  });
  const { code, stderr } = await runCommand(
    ['deliveries', 'replay', '--event', 'new_commit', '--yes'],
    options,
  );
  assert.equal(code, 0, stderr);
  const [event] = await events(service, '?type=DELIVERIES_REPLAYED');
  assert.deepEqual([event?.data.by, event?.data.event], ['command line', 'new_commit']);
});

test('nothing is recorded unless the endpoint is exposed or a retention is set', async () => {
  for (const [more, count] of [
    [{ MANAGEMENT_INCLUDE: 'health' }, 0],
    [{ AUDIT_RETENTION: '0' }, 0],
    [{ MANAGEMENT_INCLUDE: 'health', AUDIT_RETENTION: '1' }, 1],
  ] as const) {
    await using service = await startTestService({ env: { ...env, ...more }, database: 'file' });
    await service.listen();
    await fetch(`${service.urls.management}/actuator/health`);
    await service.current.stop();
    await using database = await openDatabase(service.databaseUrl);
    assert.equal((await database.audit.find({ limit: 9 })).length, count, JSON.stringify(more));
  }
});
