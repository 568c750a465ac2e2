import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readUserId } from './user-id.ts';

test('ids are positive safe integers', () => {
  assert.equal(readUserId('1'), 1);
  assert.equal(readUserId('42'), 42);
  assert.equal(readUserId('9007199254740991'), Number.MAX_SAFE_INTEGER);
});

test('no other spelling and no other number is an id', () => {
  const others = [
    ...[
      '',
      '0',
      '-1',
      '+1',
      '01',
      '1.0',
      '1.5',
      '1e3',
      '0x1',
      '1n',
      '1_000',
      ' 1',
      '1 ',
      '1\n',
      '\n1',
      'a',
      '1a',
    ],
    ...['NaN', 'Infinity', '%31', '1/', '1;DROP TABLE users', '１', '١', '²', '-0', '1,000'],
    ...['9007199254740992', '9007199254740993', '10000000000000000', '99999999999999999999'],
  ];
  for (const text of others) assert.equal(readUserId(text), undefined, JSON.stringify(text));
});

/** The definition: the one text that a positive safe integer is written as. */
function reference(text: string): number | undefined {
  const number = Number(text);
  return Number.isSafeInteger(number) && number > 0 && String(number) === text ? number : undefined;
}

test('a text is an id exactly when it is how that number is written', () => {
  const limit = Number.MAX_SAFE_INTEGER;
  const text = fc.oneof(
    fc.string(),
    fc.string({ unit: fc.constantFrom(...'0123456789+-.e \n١'), maxLength: 18 }),
    fc.maxSafeInteger().map(String),
    fc.nat(20).map((n) => String(BigInt(limit) - 10n + BigInt(n))),
    fc.double().map(String),
  );
  fc.assert(
    fc.property(text, (segment) => {
      assert.equal(readUserId(segment), reference(segment));
    }),
    { numRuns: 1_000 },
  );
});
