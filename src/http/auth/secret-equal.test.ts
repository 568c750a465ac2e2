import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { EmptySecretError, secretMatcher } from './secret-equal.ts';

test('a presented secret matches when it is one of the configured ones, whichever', () => {
  const matches = secretMatcher(['old', 'new', 'größer']);
  for (const secret of ['old', 'new', 'größer']) assert.equal(matches(secret), true);
  for (const other of ['', 'ol', 'oldd', 'OLD', ' old', 'old,new', undefined]) {
    assert.equal(matches(other), false);
  }
});

test('a secret that is configured twice matches like any other', () => {
  assert.equal(secretMatcher(['a', 'a'])('a'), true);
});

test('without secrets nothing matches, and an empty secret is refused', () => {
  assert.equal(secretMatcher([])(''), false);
  assert.equal(secretMatcher([])('x'), false);
  assert.throws(() => secretMatcher(['fine', '']), EmptySecretError);
});

test('matching is equality of texts', () => {
  const secret = fc.string({ unit: 'grapheme', minLength: 1 });
  fc.assert(
    fc.property(fc.array(secret), secret, (configured, presented) => {
      assert.equal(secretMatcher(configured)(presented), configured.includes(presented));
      assert.equal(secretMatcher([...configured, presented])(presented), true);
    }),
  );
});
