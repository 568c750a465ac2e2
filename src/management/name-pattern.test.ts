import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nameMatcher } from './name-pattern.ts';

const NAMES = ['rest.port', 'graphql.port', 'HOME', 'a'.repeat(60)];

test('names in which the pattern matches something', () => {
  const match = nameMatcher();
  assert.deepEqual([...match('port$', NAMES)], ['rest.port', 'graphql.port']);
  assert.deepEqual([...match('^(HOME|rest\\..*)$', NAMES)], ['rest.port', 'HOME']);
  assert.deepEqual([...match('nothing', NAMES)], []);
});

test('what is no expression, or a long one, is refused', () => {
  const match = nameMatcher();
  for (const pattern of ['(', '[', '*', 'a{2,1}', '(?<n>', '\\']) {
    assert.throws(() => match(pattern, NAMES), { status: 400, code: 'BAD_PATTERN' }, pattern);
  }
  assert.throws(() => match('a'.repeat(201), NAMES), { status: 400, code: 'LONG_PATTERN' });
});

test('an expression that takes years is stopped, and the next one works', () => {
  const match = nameMatcher();
  for (const pattern of [
    '(a+)+$x',
    '(a|a)*$x',
    '(a*)*b',
    '.*.*.*.*.*.*.*.*.*.*.*.*Z',
    '(?:a{0,99}){0,99}b',
  ]) {
    const started = process.cpuUsage().user;
    assert.throws(() => match(pattern, NAMES), { status: 400, code: 'SLOW_PATTERN' }, pattern);
    const seconds = (process.cpuUsage().user - started) / 1e6;
    assert.ok(seconds < 2, `${pattern}: ${seconds} s`);
    assert.deepEqual([...match('HOME', NAMES)], ['HOME']);
  }
});
