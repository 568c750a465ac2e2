import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import Fastify from 'fastify';
import type { SpringBootAdminOptions } from '../../src/management/spring-boot-admin.ts';
import { captureLog } from '../support/log-capture.ts';
import { managementApp } from '../support/management-app.ts';
import { startPortico } from '../support/portico-process.ts';
import { startTestService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import { type AdminPeer, startAdminPeer } from './admin-peer.ts';

const ABSENT = 'http://127.0.0.1:1';

/** An application with a management door that is registered every few milliseconds. */
async function listen(springBootAdmin: SpringBootAdminOptions) {
  const log = captureLog();
  const around = Fastify({ logger: { level: 'info', stream: log.stream } });
  const app = await managementApp({ springBootAdmin: { intervalMs: 5, ...springBootAdmin } }, around);
  await app.listen({ host: '127.0.0.1', port: 0 });
  const origin = app.listeningOrigin;
  const messages = () =>
    log.entries.map(({ msg }) => String(msg)).filter((msg) => /Spring Boot Admin/.test(msg));
  return { app, log, origin, messages, [Symbol.asyncDispose]: () => app.close() };
}

const only = (peer: AdminPeer) => {
  assert.equal(peer.instances.size, 1);
  const [[id, registration] = assert.fail()] = peer.instances;
  return { id, registration };
};

test('the service registers from its configuration, and takes it back when it stops', async () => {
  await using peer = await startAdminPeer();
  await using service = await startTestService({
    env: { INTERFACES: 'management', SPRING_BOOT_ADMIN_URL: `${peer.url}/` },
  });
  await service.listen();
  await waitFor('the registration', () => peer.instances.size > 0);
  const { id, registration } = only(peer);
  const { startup = '', ...metadata } = registration.metadata;
  assert.ok(Math.abs(Date.parse(startup) - performance.timeOrigin) < 1_000);
  assert.deepEqual(metadata, {}, 'no credentials');
  const origin = service.urls.management;
  assert.deepEqual(
    { ...registration, metadata },
    {
      name: 'portico',
      managementUrl: `${origin}/actuator`,
      healthUrl: `${origin}/actuator/health`,
      serviceUrl: `${origin}/`,
      metadata: {},
    },
  );
  await waitFor('the log entry', () =>
    service.log.entries.some(({ msg }) => msg === 'registered with Spring Boot Admin'),
  );
  await service.current.stop();
  assert.equal(peer.instances.size, 0);
  assert.deepEqual(peer.requests, ['POST /instances', `DELETE /instances/${id}`]);
});

test('name, addresses and credentials can be given', async () => {
  await using peer = await startAdminPeer();
  const env = {
    INTERFACES: 'management',
    SPRING_BOOT_ADMIN_URL: peer.url.replace('//', '//me:p%40ss%3A@'),
    SPRING_BOOT_ADMIN_NAME: 'shop',
    SPRING_BOOT_ADMIN_MANAGEMENT_URL: 'https://ops.example/shop/actuator/',
    SPRING_BOOT_ADMIN_SERVICE_URL: 'https://shop.example',
    SPRING_BOOT_ADMIN_USER: 'sba',
    SPRING_BOOT_ADMIN_PASSWORD: 'zq7secret',
    MANAGEMENT_INCLUDE: '*',
    MANAGEMENT_SHOW_VALUES: 'always',
  };
  await using service = await startTestService({ env });
  await service.listen();
  await waitFor('the registration', () => peer.instances.size > 0);
  const { name, managementUrl, healthUrl, serviceUrl, metadata } = only(peer).registration;
  assert.deepEqual(
    [name, managementUrl, healthUrl, serviceUrl],
    [
      'shop',
      'https://ops.example/shop/actuator',
      'https://ops.example/shop/actuator/health',
      'https://shop.example',
    ],
  );
  assert.equal(metadata['user.name'], 'sba');
  assert.equal(metadata['user.password'], 'zq7secret');
  assert.equal(peer.authorization, `Basic ${Buffer.from('me:p@ss:').toString('base64')}`);

  const base = `${service.urls.management}/actuator`;
  const shown = await Promise.all(
    ['env', 'configprops'].map(async (id) => (await fetch(`${base}/${id}`)).text()),
  );
  for (const secret of ['zq7secret', 'p%40ss', 'p@ss']) {
    assert.ok(!shown.join().includes(secret), secret);
    assert.ok(!JSON.stringify(service.log.entries).includes(secret), secret);
  }
});

test('it registers again and again, because a server that was restarted knows nobody', async () => {
  await using peer = await startAdminPeer();
  await using door = await listen({ url: peer.url });
  await waitFor('three registrations', () => peer.requests.length >= 3);
  assert.equal(peer.instances.size, 1);
  await peer.close();
  await waitFor('the failure to be logged', () => door.messages().length === 2);
  await peer.reopen();
  await waitFor('the new registration', () => peer.instances.size === 1 && door.messages().length === 3);
  const [first, second, third] = door.messages();
  assert.equal(first, 'registered with Spring Boot Admin');
  assert.equal(second, 'Spring Boot Admin registration failed, retrying');
  assert.equal(third, first);
  await door.app.close();
  assert.equal(peer.instances.size, 0);
  const after = peer.requests.length;
  await sleep(30);
  assert.equal(peer.requests.length, after, 'nothing is asked once it has stopped');
});

test('without a server the door serves, and one entry says so', async () => {
  await using door = await listen({ url: ABSENT });
  await waitFor('the failure to be logged', () => door.messages().length > 0);
  assert.equal((await fetch(`${door.origin}/actuator/health`)).status, 200);
  await sleep(50);
  assert.deepEqual(door.messages(), ['Spring Boot Admin registration failed, retrying']);
});

test('what is no registration is not taken for one', async () => {
  await using peer = await startAdminPeer();
  for (const [what, status, headers, body] of [
    ['no credentials', 401, {}, ''],
    ['a log-in page', 302, { location: '/login' }, ''],
    ['a page', 200, { 'content-type': 'text/html' }, '<html></html>'],
    ['no id', 201, {}, '{"id":7}'],
    ['no object', 201, {}, 'null'],
    ['far too much', 201, {}, `{"id":"${'x'.repeat(70_000)}"}`],
    ['a failure', 500, {}, '{"id":"x"}'],
  ] as const) {
    peer.instead = ({ url }, response) =>
      url === '/login' ? response.end('{"id":"x"}') : response.writeHead(status, headers).end(body);
    await using door = await listen({ url: peer.url });
    await waitFor(what, () => door.messages().length > 0);
    assert.deepEqual(door.messages(), ['Spring Boot Admin registration failed, retrying'], what);
    const before = peer.requests.length;
    await door.app.close();
    assert.ok(!peer.requests.slice(before).some((request) => request.startsWith('DELETE')), what);
  }
});

test('a server that never answers keeps nobody from stopping', async () => {
  await using peer = await startAdminPeer();
  peer.instead = () => {};
  await using door = await listen({ url: peer.url, timeoutMs: 600_000, farewellMs: 20 });
  await waitFor('the request', () => peer.requests.length > 0);
  assert.equal((await fetch(`${door.origin}/actuator/health`)).status, 200);
  await door.app.close();
  assert.deepEqual(peer.requests, ['POST /instances']);
});

test('nor does it keep the whole program: it starts, and ends with code 0', async () => {
  await using peer = await startAdminPeer();
  peer.instead = () => {};
  await using folder = await temporaryFolder();
  const env = { INTERFACES: 'management', SPRING_BOOT_ADMIN_URL: peer.url };
  await using portico = startPortico({ cwd: folder.path, env });
  await portico.ready();
  await waitFor('the request', () => peer.requests.length > 0);
  portico.child.kill('SIGTERM');
  assert.equal(await portico.exited(), 0);
  assert.deepEqual(
    portico.logs().filter(({ level }) => level === 'error' || level === 'fatal'),
    [],
  );
});

test('a registration that is under way when the stop begins is taken back too', async () => {
  await using peer = await startAdminPeer();
  const { promise: asked, resolve: ask } = Promise.withResolvers<() => void>();
  peer.instead = (_request, response) => ask(() => response.writeHead(201).end('{"id":"late/1"}'));
  await using door = await listen({ url: peer.url });
  const answer = await asked;
  const closed = door.app.close();
  peer.instead = undefined;
  answer();
  await closed;
  assert.deepEqual(peer.requests, ['POST /instances', 'DELETE /instances/late%2F1']);
});

test('an application that never listens is not registered', async () => {
  await using peer = await startAdminPeer();
  const app = await managementApp({ springBootAdmin: { url: peer.url } });
  assert.equal((await app.inject('/actuator/health')).statusCode, 200);
  await app.close();
  assert.deepEqual(peer.requests, []);
});
