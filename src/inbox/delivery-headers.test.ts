import assert from 'node:assert/strict';
import { test } from 'node:test';
import { headersOf, keptHeaders, MAX_HEADER_BYTES } from './delivery-headers.ts';

const headers = { 'x-a': 'a', 'x-b': 'b', cookie: 'c', 'set-cookie': ['d'] };

test('the listed headers that came are kept, in the order of the list', () => {
  assert.equal(keptHeaders(['x-b', 'x-none', 'x-a'], headers), '{"x-b":"b","x-a":"a"}');
  assert.deepEqual(headersOf({ headers: '{"x-b":"b"}' }), { 'x-b': 'b' });
});

test('without any it is nothing at all', () => {
  assert.equal(keptHeaders([], headers), null);
  assert.equal(keptHeaders(['x-none', 'set-cookie'], headers), null);
  assert.deepEqual(headersOf({ headers: null }), {});
});

test('they are bounded in bytes: what does not fit is left out whole', () => {
  const big = 'x'.repeat(MAX_HEADER_BYTES - 6);
  const kept = (names: readonly string[]) =>
    Object.keys(headersOf({ headers: keptHeaders(names, { 'x-a': big, 'x-b': 'bb', 'x-c': '' }) }));
  assert.deepEqual(kept(['x-a', 'x-b', 'x-c']), ['x-a', 'x-c']);
  assert.deepEqual(kept(['x-b', 'x-a']), ['x-b']);
});
