import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { data, done, failure, JSON_TYPE, USER_NOT_FOUND } from './envelope.ts';

test('the bytes that the contract states', () => {
  assert.equal(data('[]'), '{"status":"success","data":[]}');
  assert.equal(
    done('User created successfully'),
    '{"status":"success","message":"User created successfully"}',
  );
  assert.equal(USER_NOT_FOUND, '{"status":"error","message":"User not found"}');
  assert.equal(JSON_TYPE, 'application/json');
});

test('any value and any message stands whole in its envelope', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.string({ unit: 'grapheme' }), (value, message) => {
      const text = JSON.stringify(value);
      assert.deepEqual(JSON.parse(data(text)), { status: 'success', data: JSON.parse(text) });
      assert.deepEqual(JSON.parse(done(message)), { status: 'success', message });
      assert.deepEqual(JSON.parse(failure(message)), { status: 'error', message });
    }),
  );
});
