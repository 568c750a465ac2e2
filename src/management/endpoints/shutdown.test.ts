import assert from 'node:assert/strict';
import { test } from 'node:test';
import { managementApp } from '../../../test/support/management-app.ts';
import type { Access } from '../access/access.ts';

async function open(access?: Access) {
  const calls: string[] = [];
  const app = await managementApp({
    shutDown: () => calls.push('stop'),
    access: { endpoints: new Map(access === undefined ? [] : [['shutdown', access]]) },
  });
  return { app, calls, [Symbol.asyncDispose]: () => app.close() };
}

test('a POST is answered, then the stop begins', async () => {
  await using door = await open('unrestricted');
  const response = await door.app.inject({ method: 'POST', url: '/actuator/shutdown' });
  assert.equal(response.statusCode, 200);
  assert.deepEqual(response.json(), { message: 'Shutting down, bye...' });
  assert.equal(response.headers['content-type'], 'application/vnd.spring-boot.actuator.v3+json');
  assert.equal(response.headers.connection, 'close');
  await new Promise(setImmediate);
  assert.deepEqual(door.calls, ['stop']);
});

test('nothing else begins it', async () => {
  await using door = await open('unrestricted');
  for (const [method, status] of [
    ['GET', 405],
    ['HEAD', 405],
    ['DELETE', 405],
    ['OPTIONS', 200],
  ] as const) {
    const response = await door.app.inject({ method, url: '/actuator/shutdown' });
    assert.equal(response.statusCode, status, method);
    assert.equal(response.headers.allow, 'POST, OPTIONS');
  }
  const crossSite = { 'sec-fetch-site': 'cross-site' };
  const response = await door.app.inject({ method: 'POST', url: '/actuator/shutdown', headers: crossSite });
  assert.equal(response.statusCode, 403);
  await new Promise(setImmediate);
  assert.deepEqual(door.calls, []);
});

test('unless access is given it is not there, nor with access that only reads', async () => {
  for (const access of [undefined, 'none', 'read-only'] as const) {
    await using door = await open(access);
    const response = await door.app.inject({ method: 'POST', url: '/actuator/shutdown' });
    assert.equal(response.statusCode, 404, String(access));
    const { _links } = (await door.app.inject('/actuator')).json();
    assert.ok(!('shutdown' in _links));
    assert.deepEqual(door.calls, []);
  }
});
