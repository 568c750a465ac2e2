import assert from 'node:assert/strict';
import { test } from 'node:test';
import Fastify from 'fastify';
import { trustProxy } from './doors.ts';
import { optionOf } from './options.ts';

const { kind } = optionOf('http.trustProxy');

test('addresses, ranges and names are taken, and Fastify takes them too', async () => {
  const list =
    '127.0.0.1,10.0.0.0/8,0.0.0.0/1,::1,2001:db8::/32,::ffff:10.0.0.1,fe80::1/128,loopback,linklocal,uniquelocal';
  for (const text of [list, ...list.split(',')]) {
    assert.deepEqual(kind.fromText(text), text.split(','));
    assert.deepEqual(kind.fromValue(text.split(',')), text.split(','));
    await using app = Fastify({ trustProxy: text.split(',') });
    await app.ready();
  }
});

test('true stands for every address that connects, and for no other in X-Forwarded-For', async () => {
  for (const value of ['true', ['true']]) assert.deepEqual(kind.fromValue(value), ['true']);
  await using app = Fastify({ trustProxy: trustProxy(['true']) });
  app.get('/', ({ ip, host, protocol }) => [ip, host, protocol]);
  const headers = {
    'x-forwarded-for': '203.0.113.9, 198.51.100.1',
    'x-forwarded-host': 'a.example',
    'x-forwarded-proto': 'https',
  };
  const reply = await app.inject({ url: '/', headers, remoteAddress: '192.0.2.1' });
  assert.deepEqual(reply.json(), ['198.51.100.1', 'a.example', 'https']);
});

test('an empty list is false, which Fastify parses no header for', () => {
  assert.equal(trustProxy([]), false);
});

test('what Fastify would refuse, or not trust at all, is refused', () => {
  // A hop count is none of them: Fastify trusts nobody by it.
  for (const text of [
    '1',
    '2',
    'yes',
    '10.0.0',
    '10.0.0.0/0',
    '10.0.0.0/33',
    '::/129',
    '::/0',
    '10.0.0.0/08',
  ]) {
    assert.equal(kind.fromText(text), undefined, text);
  }
  for (const text of ['10.0.0.0/8/8', 'loopback/8', 'proxy.example', 'fe80::1%eth0', '/8']) {
    assert.equal(kind.fromText(text), undefined, text);
  }
  for (const value of [1, true, {}, [1]]) assert.equal(kind.fromValue(value), undefined);
});
