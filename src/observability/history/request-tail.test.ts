import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RequestTail } from './request-tail.ts';

test('the last replies are kept, the latest first', () => {
  using tail = new RequestTail(3);
  assert.deepEqual(tail.latest(), []);
  for (const status of [200, 201, 404, 500]) tail.record('rest', '/users/:id', 'GET', status, status / 8);
  assert.deepEqual(
    tail.latest().map(({ number, status, duration }) => [number, status, duration]),
    [
      [4, 500, 62.5],
      [3, 404, 50.5],
      [2, 201, 25.125],
    ],
  );
  const [{ door, route, method, endedAt } = assert.fail()] = tail.latest();
  assert.deepEqual([door, route, method], ['rest', '/users/:id', 'GET']);
  assert.ok(endedAt > 0);
});
