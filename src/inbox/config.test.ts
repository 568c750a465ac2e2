import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import * as v from 'valibot';
import { checkFilter, rateField } from './config.ts';

describe('webhook condition', () => {
  function problems(when: unknown): readonly string[] {
    const found: string[] = [];
    checkFilter({ value: { when }, path: 'at' }, found);
    return found;
  }

  test('functions and conditions of any depth are filters, and so is none', () => {
    const is = { pointer: '/action', is: 'opened' };
    const filters = [
      undefined,
      () => true,
      is,
      { pointer: '', is: null },
      {
        pointer: '/n',
        above: 1,
        below: 2.5,
        isNot: 2,
        in: [1, 'a', null, false],
        exists: true,
        startsWith: '',
      },
      { all: [is, { any: [{ not: is }] }] },
    ];
    for (const filter of filters) assert.deepEqual(problems(filter), [], JSON.stringify(filter));
    const none: string[] = [];
    checkFilter({ value: () => {}, path: 'at' }, none);
    assert.deepEqual(none, []);
  });

  test('each mistake is named where it is', () => {
    const shape = 'must be a function, or a condition like { pointer: "/action", is: "opened" }';
    const value = 'must be a text, a number, true, false or null';
    const cases: readonly (readonly [unknown, string])[] = [
      ['opened', `at.when ${shape}`],
      [null, `at.when ${shape}`],
      [{ pointer: 'action', is: 1 }, 'at.when.pointer must be a JSON pointer such as /action'],
      [{ is: 1 }, 'at.when.pointer must be a JSON pointer such as /action'],
      [
        { pointer: '/a' },
        'at.when must have one of is, isNot, in, includes, exists, startsWith, above, below',
      ],
      [{ pointer: '/a', iss: 1 }, 'at.when has an unknown key "iss"; did you mean is?'],
      [{ pointer: '/a', is: {} }, `at.when.is ${value}`],
      [{ pointer: '/a', is: Number.NaN }, `at.when.is ${value}`],
      [
        { pointer: '/a', in: [] },
        'at.when.in must be an array of texts, numbers, true, false or null, and not empty',
      ],
      [{ pointer: '/a', includes: [] }, `at.when.includes ${value}`],
      [{ pointer: '/a', exists: 1 }, 'at.when.exists must be true or false'],
      [{ pointer: '/a', startsWith: 1 }, 'at.when.startsWith must be a text'],
      [{ pointer: '/a', above: '1' }, 'at.when.above must be a number'],
      [{ all: [] }, 'at.when.all must be an array of conditions, and not empty'],
      [{ any: {} }, 'at.when.any must be an array of conditions, and not empty'],
      [{ not: [] }, `at.when.not ${shape}`],
      [{ any: [{ pointer: '/a', is: 1 }, () => true] }, `at.when.any[1] ${shape}`],
      [{ not: { all: [{ pointer: '/a', above: null }] } }, 'at.when.not.all[0].above must be a number'],
    ];
    for (const [when, problem] of cases) assert.deepEqual(problems(when), [problem], JSON.stringify(when));
    assert.equal(problems({ all: [{ pointer: '/a', is: 1 }], pointer: '/b', is: 1 }).length, 2);
  });
});

describe('webhook rate', () => {
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
});
