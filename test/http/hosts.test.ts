import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import Fastify from 'fastify';
import type { Door } from '../../src/config/options/options.ts';
import { rest } from '../../src/rest/rest.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { rawHttp } from '../support/connections.ts';
import { LAST_REQUEST } from '../support/odd-requests.ts';
import { inFull } from '../support/proof-settings.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { settingsOf, shownCommand } from '../support/shown-commands.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { listedRoutes, startTransportTwins } from '../support/transport-twins.ts';
import { waitFor } from '../support/wait-for.ts';
import { everything } from './management-requests.ts';
import { addContents, configModule, RELATIONS } from './samples.ts';

type Headers = Readonly<Record<string, string>>;

const GUARDED = ['rest', 'graphql', 'management'] as const;
/** A read of each door that shows something. */
const READS: Readonly<Record<Door, string>> = {
  rest: '/users',
  graphql: '/graphql?query=%7Bhello%7D',
  management: '/actuator/env',
  webhook: '/',
};
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
const ACCEPTS = ['*/*', 'text/html', 'text/event-stream'];

async function start(env: Headers = {}): Promise<TestService> {
  const service = await startTestService({ env: { HTTP_HOSTS: 'app.example', ...env } });
  await service.listen();
  return service;
}

interface Answer {
  readonly status: number;
  readonly code: unknown;
  readonly text: string;
}

/** Asks with any Host, which `fetch` does not send; the target may be absolute. */
async function ask(
  url: string,
  path: string,
  headers: Headers,
  { method = 'GET', body = '', socketPath }: { method?: string; body?: string; socketPath?: string } = {},
): Promise<Answer> {
  const sent = request(url, { method, headers, path, agent: false, ...(socketPath && { socketPath }) });
  sent.end(body);
  const [reply] = (await once(sent, 'response')) as [IncomingMessage];
  return { status: reply.statusCode ?? 0, code: reply.headers['x-error-code'], text: await text(reply) };
}

/** The codes of the refusals of a read at each guarded door; undefined for one that answers. */
const codesOf = async ({ urls }: TestService, headers: Headers) =>
  Promise.all(GUARDED.map(async (door) => (await ask(urls[door] ?? '', READS[door], headers)).code));
const REFUSED = ['UNKNOWN_HOST', 'UNKNOWN_HOST', 'UNKNOWN_HOST'];
const ANSWERED = [undefined, undefined, undefined];

test('every route of a door on loopback refuses an unknown host, by every method and on both transports', async () => {
  await using twins = await startTransportTwins({ env: everything, module: configModule('', RELATIONS) });
  await addContents(twins, true);
  const routes = await listedRoutes(twins.fast);
  assert.ok(routes.length > 30);
  const paths = new Map<Door, Set<string>>();
  for (const [door, path] of routes) {
    const target = path.replace(/:\w+$|\*$/, '1');
    paths.set(door, (paths.get(door) ?? new Set(['/', '/nothing', '/nothing/below'])).add(target));
  }
  paths.get('graphql')?.add('/graphql/assets/x.js');
  for (const path of ['/livez', '/readyz', '/actuator/console', '/actuator/console/api/live?topics=log'])
    paths.get('management')?.add(path);
  for (const door of GUARDED) {
    for (const [at, path] of [...(paths.get(door) ?? [])].entries()) {
      // Under `npm test` a third of the routes is asked with every Accept header.
      const accepts = inFull || at % 3 === 0 ? ACCEPTS : ACCEPTS.slice(0, 1);
      for (const method of METHODS) {
        for (const accept of accepts) {
          const head = `${method} ${path} HTTP/1.1\r\nHost: evil.example\r\nAccept: ${accept}\r\nContent-Length: 2\r\n\r\n{}`;
          const { fast, fastify } = await twins.ask(door, [head, LAST_REQUEST]);
          assert.match(
            fast,
            /^HTTP\/1\.1 403 [\s\S]*\r\nx-error-code: UNKNOWN_HOST\r\n/,
            `${method} ${path}`,
          );
          if (method !== 'HEAD')
            assert.match(fast, /evil\.example; add it to HTTP_HOSTS/, `${method} ${path}`);
          assert.equal(fast, fastify);
        }
      }
    }
  }
  const users = await ask(twins.fast.urls.rest ?? '', '/users', { host: 'x' });
  assert.equal(JSON.parse(users.text).data.length, 2, 'nothing was written or removed');
});

test('a WebSocket for an unknown host is refused, on both transports', async () => {
  await using twins = await startTransportTwins();
  const handshake = (host: string) =>
    `GET /graphql HTTP/1.1\r\nHost: ${host}\r\nOrigin: http://${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n`;
  await twins.agree('graphql', [handshake('evil.example')]);
  assert.match(
    (await twins.ask('graphql', [handshake('evil.example')])).fast,
    /^HTTP\/1\.1 403 [\s\S]*UNKNOWN_HOST/,
  );
  assert.match((await twins.ask('graphql', [handshake('localhost:1')])).fast, /^HTTP\/1\.1 101 /);
});

test('the names of the door have the same reply by the fast path, whatever their spelling', async () => {
  await using twins = await startTransportTwins({
    env: { HTTP_HOSTS: 'app.example', TRUST_PROXY: '127.0.0.1' },
  });
  const get = (door: Door, host: string, more = '') =>
    twins.ask(
      door,
      [`GET ${door === 'rest' ? '/users/1' : '/livez'} HTTP/1.1\r\nHost: ${host}\r\n${more}\r\n`],
      { silence: 150 },
    );
  for (const host of [
    'localhost',
    'LOCALHOST:8000',
    'localhost.',
    '127.0.0.1:9',
    '[::1]:4000',
    'App.Example:80',
    '127.1',
  ]) {
    for (const forwarded of ['', 'X-Forwarded-Host: app.example\r\n']) {
      for (const door of ['rest', 'management'] as const) {
        const before = twins.slowly;
        const { fast, fastify } = await get(door, host, forwarded);
        assert.match(fast, /^HTTP\/1\.1 200 /, host);
        assert.equal(fast, fastify);
        assert.equal(twins.slowly, before, `${host} is answered by the fast path`);
      }
    }
  }
  for (const [host, more] of [
    ['evil.example', ''],
    ['', ''],
    ['localhost.evil.example', ''],
    ['192.0.2.1', ''],
    ['evil.example', 'X-Forwarded-Host: localhost\r\n'],
    ['localhost', 'X-Forwarded-Host: evil.example\r\n'],
    ['localhost', 'X-Forwarded-Host: localhost, evil.example\r\n'],
    ['localhost', 'X-Forwarded-Host: ,\r\n'],
  ] as const) {
    const { fast, fastify } = await get('rest', host, more);
    assert.match(fast, /^HTTP\/1\.1 403 [\s\S]*UNKNOWN_HOST/, `${host} ${more}`);
    assert.equal(fast, fastify);
  }
  // That of the nearest proxy counts.
  const { fast } = await get('rest', 'localhost', 'X-Forwarded-Host: evil.example, app.example\r\n');
  assert.match(fast, /^HTTP\/1\.1 200 /);
});

test('a request without a name is no browser’s, and the target in absolute form wins over Host', async () => {
  await using service = await start();
  for (const door of GUARDED) {
    const statusOf = async (head: string) =>
      (await rawHttp(service.urls[door] ?? '', [`${head}\r\n`])).status;
    const path = READS[door];
    assert.equal(await statusOf(`GET ${path} HTTP/1.0\r\n`), 200, door);
    assert.equal(await statusOf(`GET ${path} HTTP/1.0\r\nHost: evil.example\r\n`), 403);
    assert.equal(await statusOf(`GET ${path} HTTP/1.1\r\nConnection: close\r\n`), 400, 'HTTP/1.1 needs Host');
    const absolute = (target: string, host: string) =>
      statusOf(`GET http://${target}${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n`);
    assert.equal(await absolute('localhost:1', 'evil.example'), 200);
    assert.equal(await absolute('evil.example', 'localhost'), 403);
    assert.equal(await absolute('localhost@evil.example', 'localhost'), 403);
  }
});

test('the names of the guide are those of the doors', async () => {
  const env = settingsOf(shownCommand('docs/SECURITY.md', /^HTTP_HOSTS=.* npm start$/));
  const names = String(env.HTTP_HOSTS).split(',');
  assert.ok(names.length > 1);
  await using service = await start(env);
  for (const host of names)
    assert.deepEqual(await codesOf(service, { host: `${host}:8000` }), ANSWERED, host);
  assert.deepEqual(await codesOf(service, { host: `a.${names[0]}` }), REFUSED, 'not those below it');
});

test('the webhook door takes any name', async () => {
  await using service = await start();
  const headers = { host: 'abc.tunnel.example', 'content-type': 'application/json' };
  const body = '{"event":"new_commit"}';
  const reply = await ask(service.urls.webhook ?? '', '/webhook', headers, { method: 'POST', body });
  assert.deepEqual([reply.status, reply.text], [200, 'Webhook received']);
});

test('a door that asks for credentials takes any name: no page of another name has them', async () => {
  await using secured = await start({
    API_REQUIRED: 'all',
    MANAGEMENT_USER: 'ann',
    MANAGEMENT_PASSWORD: 'password',
  });
  assert.deepEqual(await codesOf(secured, { host: 'evil.example' }), [
    'UNAUTHORIZED',
    'UNAUTHORIZED',
    'UNAUTHORIZED',
  ]);
  // Reads need none.
  await using writes = await start({ API_REQUIRED: 'write' });
  assert.deepEqual(await codesOf(writes, { host: 'evil.example' }), REFUSED);
});

test('the names hold on every loopback address that a door may listen on', async () => {
  for (const HOST of ['localhost', '127.0.0.2', '::1']) {
    await using service = await start({ HOST });
    assert.deepEqual(await codesOf(service, { host: 'evil.example' }), REFUSED, HOST);
    for (const host of ['localhost:1', '[::1]:1', '127.0.0.1', 'app.example'])
      assert.deepEqual(await codesOf(service, { host }), ANSWERED, `${host} at ${HOST}`);
  }
});

const outward = Object.values(networkInterfaces())
  .flat()
  .find((each) => each?.family === 'IPv4' && !each.internal)?.address;

test('elsewhere a door takes any name, and where names are set those and IP addresses', async () => {
  for (const HOST of ['0.0.0.0', ...(outward === undefined ? [] : [outward])]) {
    await using open = await startTestService({ env: { HOST, HTTP_HOSTS: '' } });
    await open.listen();
    assert.deepEqual(await codesOf(open, { host: 'any.example' }), ANSWERED, HOST);
    await using named = await start({ HOST });
    assert.deepEqual(await codesOf(named, { host: 'any.example' }), REFUSED, HOST);
    for (const host of ['app.example:8000', 'localhost', '10.1.2.3:8080', '[2001:db8::1]'])
      assert.deepEqual(await codesOf(named, { host }), ANSWERED, `${host} at ${HOST}`);
  }
});

test('on a Unix socket, which no browser reaches, a door takes any name', async () => {
  await using folder = await temporaryFolder();
  const socketPath = join(folder.path, 'rest');
  await using service = await start({ REST_PORT: `unix:${socketPath}`, INTERFACES: 'rest' });
  assert.equal(service.urls.rest, `unix:${socketPath}`);
  const { status } = await ask('http://localhost', '/users', { host: 'any.example' }, { socketPath });
  assert.equal(status, 200);
});

test('the name that a trusted proxy forwards counts too, and not that of others', async () => {
  for (const [TRUST_PROXY, forwarded] of [
    ['127.0.0.1', REFUSED],
    ['true', REFUSED],
    ['10.0.0.1', ANSWERED],
    ['', ANSWERED],
  ] as const) {
    await using service = await start({ TRUST_PROXY });
    const host = '127.0.0.1:8000';
    const asked = (name: string) => codesOf(service, { host, 'x-forwarded-host': name });
    assert.deepEqual(await asked('evil.example'), forwarded, TRUST_PROXY);
    assert.deepEqual(await asked('app.example'), ANSWERED, TRUST_PROXY);
    // A page that its name has led past the proxy can send the field.
    const past = { host: 'evil.example', 'x-forwarded-host': 'localhost' };
    assert.deepEqual(await codesOf(service, past), REFUSED, TRUST_PROXY);
  }
});

test('the log names each unknown host once and says what to set; the audit has every refusal', async () => {
  await using service = await start({ MANAGEMENT_INCLUDE: 'env,auditevents' });
  for (let i = 0; i < 3; i++) await codesOf(service, { host: `Evil.example:${i + 1}` });
  await codesOf(service, { host: '<no host>' });
  const named = service.log.entries.filter(({ msg }) => msg === 'unknown host refused');
  assert.deepEqual(named.map(({ logger }) => logger).sort(), [...GUARDED].sort());
  for (const { host, hint, level } of named) {
    assert.deepEqual([host, level], ['evil.example', 'warn']);
    assert.match(String(hint), /HTTP_HOSTS/);
  }
  const { rest: url = '', management = '' } = service.urls;
  const events = await waitFor('the audit', async () => {
    const { text } = await ask(management, '/actuator/auditevents?type=AUTHORIZATION_FAILURE', {
      host: 'localhost',
    });
    const { events: found } = JSON.parse(text) as { events: { data: { code: string } }[] };
    return found.length >= 12 && found;
  });
  assert.deepEqual(new Set(events.map(({ data }) => data.code)), new Set(['UNKNOWN_HOST']));
  for (let i = 0; i < 150; i++) await ask(url, '/users', { host: `a${i}.example` });
  const of = (door: string) =>
    service.log.entries.filter(({ msg, logger }) => msg === 'unknown host refused' && logger === door);
  assert.equal(of('rest').length, 100, 'clients choose how many there are');
});

test('inject and plugins in other applications work as before', async () => {
  await using service = await start();
  const { rest: door } = service.current.doors;
  assert.equal((await door?.inject('/users'))?.statusCode, 200);
  assert.equal((await door?.inject({ url: '/users', headers: { host: 'evil.example' } }))?.statusCode, 403);

  await using database = openDatabase('sqlite::memory:');
  await using app = Fastify();
  app.register(rest, { users: database.users, prefix: '/api' });
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  // Its names are a matter of the application.
  assert.equal((await ask(url, '/api/users', { host: 'any.example' })).status, 200);
});
