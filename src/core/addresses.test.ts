import assert from 'node:assert/strict';
import { test } from 'node:test';
import { socketPathOf } from './addresses.ts';

test('an address of a Unix socket is "unix:" and an absolute path that a system takes', () => {
  assert.equal(socketPathOf('unix:/run/portico/rest.sock'), '/run/portico/rest.sock');
  assert.equal(socketPathOf(`unix:/${'a'.repeat(102)}`)?.length, 103);
  for (const none of [
    8000,
    undefined,
    '8000',
    'unix:',
    'unix:rest.sock',
    'unix:/run/',
    'unix:/a\0b',
    '/run/x',
  ]) {
    assert.equal(socketPathOf(none), undefined, String(none));
  }
  assert.equal(socketPathOf(`unix:/${'é'.repeat(52)}`), undefined, 'bytes count');
});
