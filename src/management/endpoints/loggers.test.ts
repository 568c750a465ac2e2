import assert from 'node:assert/strict';
import { test } from 'node:test';
import { captureLog } from '../../../test/support/log-capture.ts';
import { managementApp } from '../../../test/support/management-app.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { openLog } from '../../telemetry/log.ts';
import { Loggers } from '../../telemetry/loggers.ts';
import { MEDIA_TYPES } from '../management-errors.ts';
import type { Access } from '../masking.ts';

async function open(access: Access = 'unrestricted') {
  const loggers = new Loggers(await openLog({ level: 'info', stream: captureLog().stream }));
  loggers.child('rest');
  const app = await managementApp({ loggers, access: { endpoints: new Map([['loggers', access]]) } });
  const set = (name: string, body: unknown, query = '') =>
    app.inject({ method: 'POST', url: `/actuator/loggers/${name}${query}`, payload: body as object });
  const get = async (name: string) => (await app.inject(`/actuator/loggers/${name}`)).json();
  return { app, loggers, set, get, [Symbol.asyncDispose]: () => app.close() };
}

test('all loggers, and one', async () => {
  await using door = await open();
  assert.deepEqual((await door.app.inject('/actuator/loggers')).json(), {
    levels: ['OFF', 'FATAL', 'ERROR', 'WARN', 'INFO', 'DEBUG', 'TRACE'],
    loggers: {
      ROOT: { configuredLevel: 'INFO', effectiveLevel: 'INFO' },
      rest: { effectiveLevel: 'INFO' },
    },
    groups: {},
  });
  assert.deepEqual(await door.get('rest'), { effectiveLevel: 'INFO' });
  for (const name of ['nope', 'REST', '', 'rest/']) {
    assert.equal((await door.app.inject(`/actuator/loggers/${name}`)).statusCode, 404, name);
    assert.equal((await door.set(name, { configuredLevel: 'debug' })).statusCode, 404, name);
  }
});

test('a level is set in any case, and taken away', async () => {
  await using door = await open();
  for (const [sent, level, pino] of [
    ['debug', 'DEBUG', 'debug'],
    ['OFF', 'OFF', 'silent'],
    ['Fatal', 'FATAL', 'fatal'],
  ] as const) {
    const response = await door.set('rest', { configuredLevel: sent });
    assert.equal(response.statusCode, 204);
    assert.equal(response.body, '');
    assert.equal(response.headers['cache-control'], 'no-store');
    assert.deepEqual(await door.get('rest'), { configuredLevel: level, effectiveLevel: level });
    assert.equal(door.loggers.child('rest').level, pino);
  }
  for (const body of [{ configuredLevel: null }, {}, undefined]) {
    await door.set('rest', { configuredLevel: 'warn' });
    assert.equal((await door.set('rest', body)).statusCode, 204);
    assert.deepEqual(await door.get('rest'), { effectiveLevel: 'INFO' });
  }
});

test('the body is read under the three media types, and under no other', async () => {
  await using door = await open();
  const post = (type: string) =>
    door.app.inject({
      method: 'POST',
      url: '/actuator/loggers/rest',
      headers: { 'content-type': type },
      payload: '{"configuredLevel":"debug"}',
    });
  for (const type of [...MEDIA_TYPES, 'application/json; charset=utf-8']) {
    assert.equal((await post(type)).statusCode, 204, type);
  }
  await door.set('rest', {});
  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'json',
  ]) {
    assert.equal((await post(type)).statusCode, 415, type);
  }
  assert.deepEqual(await door.get('rest'), { effectiveLevel: 'INFO' });
});

test('nonsense is 400 and changes nothing', async () => {
  await using door = await open();
  for (const body of [
    { configuredLevel: 'loud' },
    { configuredLevel: 'silent' },
    { configuredLevel: '' },
    { configuredLevel: 10 },
    { configuredLevel: ['DEBUG'] },
    { configuredLevel: 'debug', for: 'soon' },
    { configuredLevel: 'debug', for: 'PT0S' },
    { configuredLevel: 'debug', for: 'P2D' },
    { configuredLevel: 'debug', for: 10 },
    { level: 'debug' },
    [],
    '"debug"',
    '{',
    '7',
  ]) {
    const headers = { 'content-type': 'application/json' };
    const response = await door.app.inject({
      method: 'POST',
      url: '/actuator/loggers/rest',
      headers,
      payload: body,
    });
    assert.equal(response.statusCode, 400, JSON.stringify(body));
  }
  assert.equal((await door.set('rest', { configuredLevel: 'debug' }, '?for=x')).statusCode, 400);
  assert.deepEqual(await door.get('rest'), { effectiveLevel: 'INFO' });
});

test('a level for a while, asked for in the body or in the query', async () => {
  await using door = await open();
  for (const [body, query] of [
    [{ configuredLevel: 'trace', for: 'PT1S' }, ''],
    [{ configuredLevel: 'trace' }, '?for=PT1S'],
  ] as const) {
    assert.equal((await door.set('rest', body, query)).statusCode, 204);
    const { revertsAt, ...levels } = await door.get('rest');
    assert.deepEqual(levels, { configuredLevel: 'TRACE', effectiveLevel: 'TRACE' });
    assert.ok(Date.parse(revertsAt) <= Date.now() + 1_000);
    await waitFor('the level to fall back', () => door.loggers.child('rest').level === 'info');
    assert.deepEqual(await door.get('rest'), { effectiveLevel: 'INFO' });
  }
});

test('read-only access leaves the reading', async () => {
  await using door = await open('read-only');
  assert.equal((await door.app.inject('/actuator/loggers')).statusCode, 200);
  const response = await door.set('rest', { configuredLevel: 'debug' });
  assert.equal(response.statusCode, 405);
  assert.equal(response.headers.allow, 'GET, HEAD, OPTIONS');
  assert.deepEqual(await door.get('rest'), { effectiveLevel: 'INFO' });
});

test('OPTIONS tells that a logger can be written', async () => {
  await using door = await open();
  const allow = async (url: string) => (await door.app.inject({ method: 'OPTIONS', url })).headers.allow;
  assert.equal(await allow('/actuator/loggers/rest'), 'GET, HEAD, POST, OPTIONS');
  assert.equal(await allow('/actuator/loggers'), 'GET, HEAD, OPTIONS');
});

test('a page of another site cannot write', async () => {
  await using door = await open();
  const response = await door.app.inject({
    method: 'POST',
    url: '/actuator/loggers/rest',
    headers: { 'sec-fetch-site': 'cross-site' },
    payload: { configuredLevel: 'trace' },
  });
  assert.equal(response.statusCode, 403);
  assert.deepEqual(await door.get('rest'), { effectiveLevel: 'INFO' });
});
