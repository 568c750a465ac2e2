import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { stat, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { bearer, moduleWith } from '../access/support/tokens.ts';
import { startTestService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

interface Answer {
  readonly status: number | undefined;
  readonly body: string;
  readonly code: string | undefined;
}

async function ask(
  socketPath: string,
  path: string,
  { method = 'GET', headers = {}, body = '' } = {},
): Promise<Answer> {
  const call = request({ socketPath, path, method, headers, agent: false });
  call.end(body);
  const [response] = await once(call, 'response');
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk);
  const { 'x-error-code': code } = response.headers;
  return { status: response.statusCode, body: Buffer.concat(chunks).toString(), code };
}

test('every door answers on a Unix socket, which only its owner and group may use', async () => {
  await using folder = await temporaryFolder();
  const at = (name: string) => join(folder.path, name);
  await using service = await startTestService({
    env: {
      REST_PORT: `unix:${at('rest')}`,
      GRAPHQL_PORT: `unix:${at('graphql')}`,
      MANAGEMENT_PORT: `unix:${at('management')}`,
      PORT: `unix:${at('webhook')}`,
      LOG_REQUESTS: 'true',
      // Nobody who connects has an address, so a limit per address must not be one for all of them.
      HTTP_MAX_CONNECTIONS_PER_ADDRESS: '1',
    },
  });
  await service.listen();
  assert.equal(service.urls.rest, `unix:${at('rest')}`);
  for (const name of ['rest', 'graphql', 'management', 'webhook']) {
    assert.equal((await stat(at(name))).mode & 0o777, 0o660, name);
  }
  const user = JSON.stringify({ name: 'Ada', email: 'ada@example.org' });
  const headers = { 'content-type': 'application/json' };
  assert.equal((await ask(at('rest'), '/users', { method: 'POST', headers, body: user })).status, 200);
  const both = await Promise.all([ask(at('rest'), '/users/1'), ask(at('rest'), '/users/1')]);
  assert.deepEqual(
    both.map(({ status }) => status),
    [200, 200],
  );
  assert.equal((await ask(at('graphql'), '/graphql?query=%7Bhello%7D')).status, 200);
  assert.match((await ask(at('management'), '/actuator/health')).body, /"UP"/);
  const delivery = { method: 'POST', headers, body: '{"event":"x"}' };
  assert.equal((await ask(at('webhook'), '/webhook', delivery)).status, 200);
  await waitFor('the log', () => service.log.entries.some(({ path }) => path === '/webhook'));
  const logged = service.log.entries.find(({ path }) => path === '/webhook');
  assert.equal(logged?.client, '');
});

test('the fast path answers on a Unix socket too', async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'rest');
  await using service = await startTestService({ env: { REST_PORT: `unix:${path}`, INTERFACES: 'rest' } });
  await service.listen();
  let byNode = 0;
  service.current.doors.rest?.server.on('request', () => byNode++);
  const socket = connect(path);
  const replies: string[] = [];
  socket.on('data', (chunk: Buffer) => replies.push(chunk.toString()));
  const get = 'GET /users/7 HTTP/1.1\r\nHost: h\r\n\r\n';
  for (let count = 1; count <= 3; count++) {
    socket.write(get);
    await waitFor('a reply', () => replies.length === count);
  }
  socket.destroy();
  assert.equal(byNode, 1, 'the first of a connection is always that of Node');
});

test('trusted clients of a Unix socket may say for whom they ask, nobody else', async () => {
  for (const [trusted, client] of [
    ['unix', '203.0.113.9'],
    ['unix,10.0.0.0/8', '203.0.113.9'],
    ['10.0.0.0/8', ''],
  ] as const) {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'rest');
    await using service = await startTestService({
      env: { REST_PORT: `unix:${path}`, INTERFACES: 'rest', TRUST_PROXY: trusted, LOG_REQUESTS: 'true' },
    });
    await service.listen();
    await ask(path, '/users/1', { headers: { 'x-forwarded-for': '203.0.113.9' } });
    await waitFor('the log', () => service.log.entries.some(({ path: asked }) => asked === '/users/1'));
    const entry = service.log.entries.find(({ path: asked }) => asked === '/users/1');
    assert.equal(entry?.client ?? '', client, trusted);
  }
});

test('failed log-ins of clients without an address are limited together', async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'management');
  await using service = await startTestService({
    env: {
      MANAGEMENT_PORT: `unix:${path}`,
      INTERFACES: 'management',
      MANAGEMENT_USER: 'ada',
      MANAGEMENT_PASSWORD: 'secret',
      MANAGEMENT_MAX_FAILED_LOGINS: '2',
    },
  });
  await service.listen();
  const wrong = { headers: { authorization: `Basic ${btoa('ada:wrong')}` } };
  const statuses = [];
  for (let guess = 0; guess < 3; guess++) statuses.push((await ask(path, '/actuator/env', wrong)).status);
  assert.deepEqual(statuses, [401, 401, 429]);
});

test('clients without an address have one rate and one limit on failures together, unless they are named', async () => {
  for (const [trusted, outcomes] of [
    ['10.0.0.0/8', ['USER_NOT_FOUND', 'UNAUTHORIZED', 'UNAUTHORIZED', 'TOO_MANY_ATTEMPTS', 'RATE_LIMITED']],
    ['unix', ['USER_NOT_FOUND', 'UNAUTHORIZED', 'UNAUTHORIZED', 'UNAUTHORIZED', 'USER_NOT_FOUND']],
  ] as const) {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'rest');
    await using service = await startTestService({
      module: moduleWith(),
      env: {
        REST_PORT: `unix:${path}`,
        INTERFACES: 'rest',
        TRUST_PROXY: trusted,
        API_REQUIRED: 'write',
        API_MAX_FAILURES: '2',
        API_RATE: '1/h',
        API_BURST: '4',
      },
    });
    await service.listen();
    const sent = ['', 'Bearer wrong-1', 'Bearer wrong-2', 'Bearer wrong-3', ''];
    const got = [];
    for (const [i, authorization] of sent.entries()) {
      const headers = { 'x-forwarded-for': `203.0.113.${i}`, ...(authorization && { authorization }) };
      const { status, code } = await ask(path, '/users/1', { headers });
      got.push(code ?? String(status));
    }
    assert.deepEqual(got, outcomes, trusted);
    const known = await ask(path, '/users/1', { headers: { authorization: bearer('reader') } });
    assert.equal(known.status, 200, 'a known token has a rate of its own');
  }
});

test('a socket file that nobody listens on is replaced; one that is in use, or no socket, stays', async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'rest');
  const start = () => startTestService({ env: { REST_PORT: `unix:${path}`, INTERFACES: 'rest' } });

  // A process that is killed leaves its file.
  const program = `require('net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`;
  await once(spawn(process.execPath, ['-e', program]), 'exit');
  assert.ok((await stat(path)).isSocket());
  {
    await using service = await start();
    await service.listen();
    assert.equal((await ask(path, '/users/1')).status, 200);

    await using second = await start();
    await assert.rejects(second.listen(), /cannot listen on .*rest: another program listens there/);
    assert.equal((await ask(path, '/users/1')).status, 200);
  }
  await assert.rejects(stat(path), 'a stop removes it');

  await writeFile(path, 'mine');
  await using third = await start();
  await assert.rejects(third.listen(), /a file that is not a socket exists there/);
  await using fourth = await startTestService({
    env: { REST_PORT: `unix:${join(folder.path, 'no', 'rest')}`, INTERFACES: 'rest' },
  });
  await assert.rejects(fourth.listen(), /its folder does not exist/);
});

test('a server that merely is slow to accept is not taken for dead', async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'rest');
  const other = createServer().listen(path);
  await once(other, 'listening');
  await using service = await startTestService({ env: { REST_PORT: `unix:${path}`, INTERFACES: 'rest' } });
  await assert.rejects(service.listen(), { code: 'CANNOT_LISTEN' });
  other.close();
});
