import assert from 'node:assert/strict';
import { test } from 'node:test';
import { networkOf } from './network-of.ts';

test('an IPv4 address is a client of its own, in IPv6 too, and no address is one', () => {
  for (const address of ['127.0.0.1', '::ffff:192.0.2.1', '']) assert.equal(networkOf(address), address);
  assert.equal(networkOf(undefined), '');
});

test('the addresses of an IPv6 network of 64 bits are one client', () => {
  const networks: Readonly<Record<string, readonly string[]>> = {
    '2001:db8:0:1': ['2001:db8:0:1::', '2001:db8:0:1::5', '2001:db8:0:1:a:b:c:d', '2001:db8::1:0:0:0:1'],
    '2001:db8:0:0': ['2001:db8::', '2001:db8::1', '2001:db8::ffff:1'],
    '0:0:0:0': ['::', '::1'],
    'fe80:0:0:0': ['fe80::1%eth0', 'fe80::1'],
  };
  for (const [network, addresses] of Object.entries(networks)) {
    for (const address of addresses) assert.equal(networkOf(address), network, address);
  }
});
