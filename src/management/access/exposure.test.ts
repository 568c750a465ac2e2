import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exposure } from './exposure.ts';

const exposed = (include: string[], exclude: string[] = []) => {
  const isExposed = exposure(include, exclude);
  return ['health', 'info', 'metrics', 'env', 'my-Own.page'].filter(isExposed);
};

test('what is included is exposed, and nothing else', () => {
  assert.deepEqual(exposed([]), []);
  assert.deepEqual(exposed(['health', 'env', 'unknown']), ['health', 'env']);
  assert.deepEqual(exposed(['*']), ['health', 'info', 'metrics', 'env', 'my-Own.page']);
});

test('exclude wins', () => {
  assert.deepEqual(exposed(['*'], ['env']), ['health', 'info', 'metrics', 'my-Own.page']);
  assert.deepEqual(exposed(['health', 'env'], ['env']), ['health']);
  assert.deepEqual(exposed(['health'], ['*']), []);
});

test('case, dashes and dots of a name do not count', () => {
  assert.deepEqual(exposed(['HEALTH', 'MyOwnPage']), ['health', 'my-Own.page']);
  assert.deepEqual(exposed(['*'], ['my.own-page', 'I-N-F-O']), ['health', 'metrics', 'env']);
});
