import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { storable, storableKey, stored } from './text.ts';

const text = fc.string({
  unit: fc.constantFrom('\0', '\u0010', '0', '1', 'a', '"', '\\', '\u{1f600}'),
  maxLength: 12,
});

test('every text round-trips, and is stored without NUL', () => {
  fc.assert(
    fc.property(text, (given) => {
      assert.ok(!storable(given).includes('\0'));
      assert.equal(stored(storable(given)), given);
    }),
  );
  assert.equal(storable(null), null);
  assert.equal(stored(null), null);
});

test('different keys stay different, however long, and none is too long for an index', () => {
  const long = 'x'.repeat(100_000);
  const digest = storableKey(`${long}a`);
  const keys = [`${long}a`, `${long}b`, digest, 'a', 'a\0', 'a\u00100', '', 'x'.repeat(200), 'x'.repeat(201)];
  const storedKeys = keys.map((key) => storableKey(key));
  assert.equal(new Set(storedKeys).size, keys.length);
  assert.ok(storedKeys.every((key) => key.length <= 400));
  assert.equal(storableKey(`${long}a`), digest);
  assert.equal(storableKey(null), null);
});
