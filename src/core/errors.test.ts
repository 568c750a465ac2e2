import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeError } from './errors.ts';

test('a failure is one line, whatever was thrown', () => {
  assert.equal(describeError(new TypeError('no host')), 'TypeError: no host');
  assert.equal(describeError('text'), 'Error: text');
  assert.equal(describeError(undefined), 'Error: undefined');
  assert.match(describeError(Object.create(null)), /cannot be described/);
});

test('an error without a message of its own shows its code or its first cause', () => {
  const refused = new Error('connect ECONNREFUSED ::1:1');
  assert.equal(describeError(new AggregateError([refused])), 'AggregateError: connect ECONNREFUSED ::1:1');
  const withCode = Object.assign(new AggregateError([refused]), { code: 'ECONNREFUSED' });
  assert.equal(describeError(withCode), 'AggregateError: ECONNREFUSED');
});
