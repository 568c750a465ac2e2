import assert from 'node:assert/strict';
import { test } from 'node:test';
import { guardedLookup, isPrivateHost, PrivateAddressError } from './guarded-lookup.ts';
import { HostResolver } from './host-resolver.ts';

type Found = { readonly error: Error | null; readonly address: unknown };

const resolver = new HostResolver();
const look = (hostname: string, all: boolean, allowPrivate = false) =>
  new Promise<Found>((resolve) => {
    guardedLookup(resolver, allowPrivate)(hostname, { all }, (error, address) => resolve({ error, address }));
  });

test('a name with a private address is refused without a retry, with advice', async () => {
  for (const all of [true, false]) {
    const { error, address } = await look('localhost', all);
    assert.ok(error instanceof PrivateAddressError);
    assert.equal(error.retryAfter, 'never');
    assert.match(error.message, /localhost is a private address; set allowPrivate/);
    assert.equal(address, '');
  }
});

test('a private address is given where that is allowed', async () => {
  const { error, address } = await look('localhost', false, true);
  assert.equal(error, null);
  assert.match(String(address), /^(?:127\.0\.0\.1|::1)$/);
});

test('a public address is given in the form that was asked for', async () => {
  assert.deepEqual(await look('8.8.8.8', false), { error: null, address: '8.8.8.8' });
  assert.deepEqual(await look('8.8.8.8', true), {
    error: null,
    address: [{ address: '8.8.8.8', family: 4 }],
  });
});

test('hosts that are addresses themselves, in every spelling that a URL knows', () => {
  for (const host of [
    '127.0.0.1',
    '127.1',
    '0x7f.1',
    '2130706433',
    '017700000001',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:10.1.2.3]',
    '[fd00::1]',
    '169.254.169.254',
    '１２７.0.0.1',
  ]) {
    const { hostname } = new URL(`http://${host}/`);
    assert.ok(isPrivateHost(hostname), host);
  }
  for (const host of ['8.8.8.8', '[2606:4700::1111]', 'example.com', 'localhost']) {
    assert.ok(!isPrivateHost(new URL(`http://${host}/`).hostname), host);
  }
});
