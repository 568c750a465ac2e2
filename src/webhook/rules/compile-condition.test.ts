import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Condition } from '../../config/schema/webhook-condition.ts';
import { compileCondition } from './compile-condition.ts';

const holds = (condition: Condition, body: unknown) => compileCondition(condition)(body);
/** The values among these, at /x, for which a test holds. */
const VALUES = [undefined, null, true, false, 0, 5, -1, '', '5', 'opened', [], ['opened'], {}];
const chosen = (tests: object) =>
  VALUES.filter((x) => holds({ pointer: '/x', ...tests }, x === undefined ? {} : { x }));

test('each test tells values apart by their type', () => {
  assert.deepEqual(chosen({ is: 'opened' }), ['opened']);
  assert.deepEqual(chosen({ is: 5 }), [5]);
  assert.deepEqual(chosen({ is: null }), [null]);
  assert.deepEqual(chosen({ is: false }), [false]);
  assert.deepEqual(
    chosen({ isNot: 5 }),
    VALUES.filter((value) => value !== 5),
  );
  assert.deepEqual(chosen({ in: ['5', true] }), [true, '5']);
  assert.deepEqual(
    chosen({ exists: true }),
    VALUES.filter((value) => value !== undefined),
  );
  assert.deepEqual(chosen({ exists: false }), [undefined]);
  assert.deepEqual(chosen({ includes: 'opened' }), [['opened']]);
  assert.deepEqual(chosen({ includes: 'open' }), []);
  assert.deepEqual(chosen({ startsWith: 'open' }), ['opened']);
  assert.deepEqual(chosen({ startsWith: '' }), ['', '5', 'opened']);
  assert.deepEqual(chosen({ above: 0 }), [5]);
  assert.deepEqual(chosen({ below: 0 }), [-1]);
  assert.deepEqual(chosen({ above: -1, below: 5 }), [0], 'all tests must hold');
});

test('the pointer goes into the body as RFC 6901 says', () => {
  const body = { 'a/b': [{ '~': 'x' }], length: 1 };
  assert.ok(holds({ pointer: '/a~1b/0/~0', is: 'x' }, body));
  assert.ok(holds({ pointer: '/a~1b/1', exists: false }, body));
  assert.ok(holds({ pointer: '/toString', exists: false }, body));
  assert.ok(holds({ pointer: '', is: 7 }, 7));
});

test('conditions are combined as in logic', () => {
  const leaf = fc.record({ pointer: fc.constantFrom('/a', '/b', '/c'), is: fc.constantFrom(1, 2) });
  const { condition } = fc.letrec<{ condition: Condition }>((tie) => ({
    condition: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      leaf,
      fc.record({ all: fc.array(tie('condition'), { minLength: 1, maxLength: 3 }) }),
      fc.record({ any: fc.array(tie('condition'), { minLength: 1, maxLength: 3 }) }),
      fc.record({ not: tie('condition') }),
    ),
  }));
  const body = fc.record({ a: fc.constantFrom(1, 2), b: fc.constantFrom(1, 2) }, { requiredKeys: [] });
  /** The same by the book, read anew at each body. */
  function expected(given: Condition, of: Readonly<Record<string, unknown>>): boolean {
    if ('all' in given) return given.all.reduce((so, each) => so && expected(each, of), true);
    if ('any' in given) return given.any.reduce((so, each) => so || expected(each, of), false);
    if ('not' in given) return !expected(given.not, of);
    return of[given.pointer.slice(1)] === given.is;
  }
  fc.assert(fc.property(condition, body, (given, of) => assert.equal(holds(given, of), expected(given, of))));
});

test('it never throws, whatever the body is', () => {
  const tests = {
    is: 1,
    isNot: 2,
    in: ['a'],
    includes: 1,
    exists: true,
    startsWith: 'a',
    above: 1,
    below: 2,
  };
  for (const [name, value] of Object.entries(tests)) {
    const check = compileCondition({ pointer: '/a/0', [name]: value });
    fc.assert(
      fc.property(fc.jsonValue(), (body) => assert.equal(typeof check(body), 'boolean')),
      { numRuns: 50 },
    );
  }
});
