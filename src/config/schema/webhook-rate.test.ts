import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as v from 'valibot';
import { rateField } from './webhook-rate.ts';

const read = (rate: unknown) => v.safeParse(rateField, rate);

test('a rate is a number of attempts in a second, a minute or an hour', () => {
  const cases = [
    ['10/s', { perMs: 0.01, burst: 1 }],
    ['2000/s', { perMs: 2, burst: 200 }],
    ['60/m', { perMs: 0.001, burst: 1 }],
    ['3600/h', { perMs: 0.001, burst: 1 }],
    [
      { limit: '10/s', burst: 20 },
      { perMs: 0.01, burst: 20 },
    ],
    [{ limit: '10/s' }, { perMs: 0.01, burst: 1 }],
  ] as const;
  for (const [given, expected] of cases) assert.deepEqual(read(given).output, expected);
});

test('anything else is refused', () => {
  const wrong = [
    10,
    '10',
    '0/s',
    '10/d',
    '1.5/s',
    ' 10/s',
    '-1/s',
    null,
    {},
    { limit: '10/s', burst: 0 },
    { limit: '1/s', bursts: 1 },
  ];
  for (const given of wrong) {
    assert.match(String(read(given).issues?.[0]?.message), /^must be like "10\/s"/, JSON.stringify(given));
  }
});
