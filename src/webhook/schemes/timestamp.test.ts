import assert from 'node:assert/strict';
import { test } from 'node:test';
import { timestampFault } from './timestamp.ts';

const NOW = 1_700_000_000_999;

test('the tolerance is inclusive, both ways', () => {
  for (const [timestamp, fault] of [
    ['1700000000', undefined],
    ['1699999700', undefined],
    ['1699999699', 'too-old'],
    ['1700000300', undefined],
    ['1700000301', 'too-new'],
    ['0', 'too-old'],
    ['999999999999999', 'too-new'],
  ] as const) {
    assert.equal(timestampFault(timestamp, 300, NOW), fault, timestamp);
  }
  assert.equal(timestampFault('1699999999', 1, NOW), undefined);
  assert.equal(timestampFault('1699999998', 1, NOW), 'too-old');
});

test('a tolerance of 0 allows every time, but still wants one', () => {
  for (const timestamp of ['0', '1', '1700000000', '999999999999999']) {
    assert.equal(timestampFault(timestamp, 0, NOW), undefined);
  }
  assert.equal(timestampFault(undefined, 0, NOW), 'no-timestamp');
  assert.equal(timestampFault('1700000000junk', 0, NOW), 'malformed-timestamp');
});

test('a timestamp is digits in one spelling', () => {
  assert.equal(timestampFault(undefined, 300, NOW), 'no-timestamp');
  const near = ['1700000000junk', ' 1700000000', '1700000000 ', '1700000000\n', '01700000000', '+1700000000'];
  const other = ['1700000000.0', '1.7e9', '0x6553F100', '1700000000, 1700000000', '-1', 'NaN', ''];
  for (const text of [...near, ...other, '١٧٠٠٠٠٠٠٠٠', '1700000000000000']) {
    assert.equal(timestampFault(text, 300, NOW), 'malformed-timestamp', text);
  }
});
