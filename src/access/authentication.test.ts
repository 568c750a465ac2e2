import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { bearerToken, isToken } from './policy.ts';

test('the token of a Bearer header is read, in any case of the scheme', () => {
  for (const scheme of ['Bearer', 'bearer', 'BEARER', 'bEaReR']) {
    assert.equal(bearerToken(`${scheme} abc.DEF-1_2~+/==`), 'abc.DEF-1_2~+/==');
  }
  assert.equal(bearerToken('Bearer   abc'), 'abc');
  for (const other of ['', 'Bearer', 'Bearerabc', 'Basic abc', 'Token abc']) {
    assert.equal(bearerToken(other), undefined, other);
  }
});

test('a token is what RFC 6750 allows', () => {
  const characters = 'abcXYZ019-._~+/';
  const good = fc
    .tuple(fc.string({ unit: fc.constantFrom(...characters), minLength: 1 }), fc.nat(3))
    .map(([text, padding]) => text + '='.repeat(padding));
  fc.assert(fc.property(good, (token) => isToken(token) && bearerToken(`Bearer ${token}`) === token));
  const bad = fc
    .tuple(good, fc.constantFrom(' ', ',', '"', '=a', 'é', '\n', ';', '%'), fc.string())
    .map(([token, wrong, rest]) => token + wrong + rest);
  fc.assert(fc.property(bad, (token) => !isToken(token)));
  assert.ok(!isToken(''));
  assert.ok(!isToken('a'.repeat(9_000)));
});

test('no header makes the reader throw', () => {
  fc.assert(fc.property(fc.string(), (text) => void bearerToken(`Bearer ${text}`)));
});
