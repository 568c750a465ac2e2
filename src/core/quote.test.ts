import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { describeKind, describeValue, oneLine, quote } from './quote.ts';

test('a quoted text is one short line without control characters', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
      const quoted = quote(text);
      assert.match(quoted, /^"[^\p{Cc}\p{Zl}\p{Zp}]*"$/u);
      assert.ok(quoted.length < 62 * 6);
    }),
  );
  assert.equal(quote('a"b\n'), '"a\\"b\\n"');
  assert.equal(quote('\u009b31m\u202e'), '"?31m?"');
});

test('values are named by what they are', () => {
  assert.equal(describeValue('x'), '"x"');
  assert.equal(describeValue(1.5), '1.5');
  assert.equal(describeValue(null), 'null');
  assert.equal(describeValue(10n), '10');
  assert.equal(describeValue([1]), 'an array');
  assert.equal(describeValue({}), 'an object');
  assert.equal(describeValue(Symbol('x')), 'a symbol');
  assert.equal(
    describeValue(() => 1),
    'a function',
  );
  assert.equal(describeKind('x'), 'a text');
  assert.equal(describeKind(1.5), '1.5');
});

test('a message of several lines becomes one', () => {
  assert.equal(oneLine(' a\n\tb\r\nc\u2028d '), 'a b c d');
});
