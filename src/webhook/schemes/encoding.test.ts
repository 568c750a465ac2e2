import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { base64Bytes, hexBytes } from './encoding.ts';

const bytes = fc.uint8Array({ minLength: 1, maxLength: 70 }).map((each) => Buffer.from(each));

test('an encoding decodes at its own length only', () => {
  fc.assert(
    fc.property(bytes, (each) => {
      assert.deepEqual(hexBytes(each.toString('hex'), each.length), each);
      assert.deepEqual(base64Bytes(each.toString('base64'), each.length), each);
      for (const length of [each.length - 1, each.length + 1]) {
        assert.equal(hexBytes(each.toString('hex'), length), undefined);
        assert.equal(base64Bytes(each.toString('base64'), length), undefined);
      }
    }),
  );
});

test('a text has one spelling: whatever else is read as the same bytes is refused', () => {
  const text = fc.string({ unit: fc.constantFrom(...'Aa09+/-_=\n \u0161'), maxLength: 8 });
  fc.assert(
    fc.property(text, fc.nat(6), (each, length) => {
      const fromHex = hexBytes(each, length);
      if (fromHex !== undefined) assert.equal(fromHex.toString('hex'), each);
      const fromBase64 = base64Bytes(each, length);
      if (fromBase64 !== undefined) assert.equal(fromBase64.toString('base64'), each);
    }),
  );
});

test('loose spellings', () => {
  assert.deepEqual(base64Bytes('AA==', 1), Buffer.from([0]));
  for (const loose of ['AB==', 'AA', 'AA=', 'AA=\n', '-A==', 'A A=', '']) {
    assert.equal(base64Bytes(loose, 1), undefined, loose);
  }
  assert.deepEqual(hexBytes('0f', 1), Buffer.from([15]));
  for (const loose of ['0F', '0x', 'f', '0f\n', ' f', '\u0130f', '']) {
    assert.equal(hexBytes(loose, 1), undefined, loose);
  }
});
