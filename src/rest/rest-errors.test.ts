import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HttpProblem } from '../http/problem.ts';
import { restErrors } from './rest-errors.ts';

const bodyOf = (status: number, method: string | undefined) =>
  JSON.parse(
    restErrors.body(
      new HttpProblem(status, 'BAD_REQUEST', 'secret-12'),
      method === undefined ? undefined : { method, url: '/' },
    ),
  ) as unknown;

test('a write that fails says what the contract says, whatever the reason was (contract 7)', () => {
  for (const status of [400, 403, 413, 500, 503]) {
    assert.deepEqual(bodyOf(status, 'POST'), { status: 'error', message: 'Failed to create user' });
    assert.deepEqual(bodyOf(status, 'PUT'), { status: 'error', message: 'Failed to update user' });
    assert.deepEqual(bodyOf(status, 'DELETE'), { status: 'error', message: 'Failed to delete user' });
  }
});

test('any other refusal shows the reason phrase of its status, never the message of the problem', () => {
  for (const method of ['GET', 'HEAD', 'PATCH', undefined]) {
    assert.deepEqual(bodyOf(503, method), { status: 'error', message: 'Service Unavailable' });
    assert.deepEqual(bodyOf(400, method), { status: 'error', message: 'Bad Request' });
  }
});

test('the content type is the one of all replies (contract 2.3)', () => {
  assert.equal(restErrors.contentType, 'application/json');
});
