import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isLocalClient, isOwnHost } from './console-hosts.ts';

test('a client is local by its address, and through a proxy only where that is trusted', () => {
  for (const [ip, expected] of [
    ['127.0.0.1', true],
    ['127.8.9.10', true],
    ['::1', true],
    ['::ffff:127.0.0.1', true],
    ['10.0.0.7', false],
    ['::ffff:10.0.0.7', false],
    ['127.0.0.1.example.org', false],
    ['', false],
  ] as const) {
    assert.equal(isLocalClient({ ip, ips: undefined, headers: {} } as never), expected, ip);
  }
  for (const name of ['x-forwarded-for', 'forwarded', 'x-real-ip', 'via']) {
    const client = { ip: '127.0.0.1', headers: { [name]: 'somebody' } };
    assert.equal(isLocalClient({ ...client, ips: undefined } as never), false, name);
    assert.equal(isLocalClient({ ...client, ips: ['127.0.0.1'] } as never), true, name);
  }
});

test('an address and localhost are own names, others have to be configured', () => {
  const names = ['ops.example.org', '0.0.0.0'];
  for (const hostname of ['127.0.0.1', '192.0.2.1', '[::1]', 'localhost', 'LOCALHOST', 'Ops.Example.org']) {
    assert.ok(isOwnHost({ hostname }, names), hostname);
  }
  for (const hostname of [
    'evil.example',
    'localhost.evil.example',
    'example.org',
    '',
    '127.0.0.1.evil.example',
  ]) {
    assert.ok(!isOwnHost({ hostname }, names), hostname);
  }
});

test('who comes without an address is local on a Unix socket alone', () => {
  const client = { ip: undefined, ips: undefined, headers: {} } as never;
  assert.equal(isLocalClient(client), false, 'a connection that is gone');
  assert.equal(isLocalClient(client, true), true);
  const forwarded = { ip: undefined, ips: undefined, headers: { 'x-forwarded-for': '203.0.113.7' } } as never;
  assert.equal(isLocalClient(forwarded, true), false);
  assert.equal(isLocalClient({ ip: '203.0.113.7', ips: ['203.0.113.7'], headers: {} } as never, true), false);
});
