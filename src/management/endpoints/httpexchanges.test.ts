import assert from 'node:assert/strict';
import { test } from 'node:test';
import Fastify from 'fastify';
import { managementApp } from '../../../test/support/management-app.ts';
import { ExchangeLog } from '../../http/exchange-log.ts';

async function open(secrets: readonly string[] = []) {
  const exchanges = new ExchangeLog();
  const door = Fastify();
  exchanges.listen(door);
  door.all('/*', (_request, reply) =>
    reply.header('set-cookie', 'a=canary').header('x-own', 'yes').send('text'),
  );
  const app = await managementApp({ exchanges, secrets: { texts: secrets } });
  const read = async () => (await app.inject('/actuator/httpexchanges')).json().exchanges;
  return { door, read, [Symbol.asyncDispose]: () => Promise.all([app.close(), door.close()]).then(() => {}) };
}

test('an exchange in the shape of Actuator', async () => {
  await using app = await open();
  assert.deepEqual(await app.read(), []);
  await app.door.inject({
    method: 'POST',
    url: '/users?page=2',
    headers: { host: 'h:1', accept: 'a, b', 'content-type': 'text/plain' },
    payload: 'x',
  });
  const [{ timestamp, timeTaken, ...exchange }, ...more] = await app.read();
  assert.deepEqual(more, []);
  assert.ok(Math.abs(Date.parse(timestamp) - Date.now()) < 60_000);
  assert.match(timeTaken, /^PT0\.\d{1,6}S$/);
  const { request, response } = exchange;
  assert.equal(request.uri, 'http://h:1/users?page=2');
  assert.equal(request.method, 'POST');
  assert.deepEqual(request.headers.accept, ['a, b']);
  assert.deepEqual(request.headers.host, ['h:1']);
  assert.equal(response.status, 200);
  assert.deepEqual(response.headers['x-own'], ['yes']);
  assert.deepEqual(response.headers['content-length'], ['4']);
});

test('no secret is shown: not in headers, nor in the URI, nor a known one anywhere', async () => {
  await using app = await open(['known-canary']);
  await app.door.inject({
    url: '/a?access_token=canary&x=known-canary&y=1',
    headers: {
      authorization: 'Basic canary',
      'proxy-authorization': 'canary',
      cookie: 'a=canary',
      'x-webhook-token': 'canary',
      'x-api-key': 'canary',
      'x-hub-signature-256': 'canary',
      referer: 'https://user:canary@h/?token=canary',
      'x-note': 'a known-canary',
    },
  });
  const exchanges = await app.read();
  assert.ok(!JSON.stringify(exchanges).includes('canary'));
  const [{ request, response }] = exchanges;
  assert.equal(request.uri, 'http://localhost:80/a?access_token=******&x=******&y=1');
  assert.deepEqual(Object.keys(request.headers).sort(), ['host', 'referer', 'user-agent', 'x-note']);
  assert.equal(response.headers['set-cookie'], undefined);
});

test('what a client makes long is cut', async () => {
  await using app = await open();
  await app.door.inject({ url: `/${'x'.repeat(5_000)}`, headers: { 'x-long': 'y'.repeat(5_000) } });
  const [{ request }] = await app.read();
  assert.equal(request.uri.length, 2_000);
  assert.equal(request.headers['x-long'][0].length, 2_000);
});
