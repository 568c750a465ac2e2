import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isOwnHost } from './console-hosts.ts';

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
