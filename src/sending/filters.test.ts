import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { compileFilter, FilterError, isTypePattern, matchesType } from './filters.ts';

type Json = Readonly<Record<string, unknown>>;

/** Names of members, also those that every object inherits. */
const member = fc.constantFrom('a', 'b', 'c', 'length', 'constructor', 'toString', '__proto__');
const scalar = fc.oneof(
  fc.constantFrom('', 'a', 'ab', 'b', '5'),
  fc.constantFrom(-1, 0, 5, 7.5),
  fc.boolean(),
);

/** An object as JSON.parse makes it: `__proto__` is a member like the others. */
const objectOf = (entries: readonly (readonly [string, unknown])[]): Json => {
  const made = {};
  for (const [name, value] of entries)
    Object.defineProperty(made, name, { value, enumerable: true, configurable: true, writable: true });
  return made;
};

const { data } = fc.letrec<{ data: unknown; record: Json }>((tie) => ({
  record: fc
    .uniqueArray(fc.tuple(member, tie('data')), { selector: ([name]) => name, maxLength: 4 })
    .map(objectOf),
  data: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalar,
    fc.constant(null),
    tie('record'),
    fc.array(tie('data'), { maxLength: 3 }),
  ),
}));

const memberOf = (found: unknown, name: string): unknown =>
  typeof found === 'object' && found !== null && !Array.isArray(found) && Object.hasOwn(found, name)
    ? Reflect.get(found, name)
    : undefined;
const isMissing = (value: unknown) => value === null || value === undefined;

/** A condition with what it means. */
interface Condition {
  readonly written: unknown;
  means(value: unknown): boolean;
}

/** The order of two values of one kind; undefined for others. */
function compared(value: unknown, given: unknown): number | undefined {
  if (typeof value === 'number' && typeof given === 'number') return value - given;
  if (typeof value !== 'string' || typeof given !== 'string') return undefined;
  return value === given ? 0 : value < given ? -1 : 1;
}

const ordered = (name: string, holds: (order: number) => boolean) =>
  scalar.map((given): readonly [string, Condition] => [
    name,
    {
      written: given,
      means(value) {
        const order = compared(value, given);
        return order !== undefined && holds(order);
      },
    },
  ]);
const other = <T>(name: string, values: fc.Arbitrary<T>, means: (value: unknown, given: T) => boolean) =>
  values.map((given): readonly [string, Condition] => [
    name,
    { written: given, means: (value) => means(value, given) },
  ]);

const comparison = fc.oneof(
  other('eq', scalar, (value, given) => value === given),
  other('ne', scalar, (value, given) => value !== given),
  ordered('lt', (order) => order < 0),
  ordered('lte', (order) => order <= 0),
  ordered('gt', (order) => order > 0),
  ordered('gte', (order) => order >= 0),
  other('in', fc.array(scalar, { maxLength: 4 }), (value, given) => given.some((each) => each === value)),
  other('null', fc.boolean(), (value, given) => isMissing(value) === given),
  other(
    'prefix',
    scalar,
    (value, given) => typeof value === 'string' && value.slice(0, String(given).length) === String(given),
  ),
  other(
    'contains',
    scalar,
    (value, given) =>
      typeof value === 'string' && value.split(String(given)).length > 1 - Number(given === ''),
  ),
);

const all = (
  entries: readonly (readonly [string, Condition])[],
  of: (value: unknown, name: string) => unknown,
) => ({
  written: objectOf(entries.map(([name, { written }]) => [name, written])),
  means: (value: unknown) => entries.every(([name, { means }]) => means(of(value, name))),
});

const { condition } = fc.letrec<{ condition: Condition; member: readonly [string, Condition] }>((tie) => ({
  condition: fc
    .uniqueArray(tie('member'), { selector: ([name]) => name, maxLength: 3 })
    .map((entries) =>
      all(entries, (value, name) => (['and', 'or', 'not'].includes(name) ? value : memberOf(value, name))),
    ),
  member: fc.oneof(
    { depthSize: 'small', maxDepth: 4 },
    fc.tuple(
      member,
      fc.oneof(
        scalar.map((written) => ({ written, means: (value: unknown) => value === written })),
        fc.constant({ written: null, means: isMissing }),
        fc
          .uniqueArray(comparison, { selector: ([name]) => name, minLength: 1, maxLength: 3 })
          .map((entries) => all(entries, (value) => value)),
      ),
    ),
    fc.tuple(
      member,
      tie('condition').filter(({ written }) => Object.keys(Object(written)).length > 0),
    ),
    fc.array(tie('condition'), { maxLength: 3 }).map((list): readonly [string, Condition] => [
      'and',
      {
        written: list.map(({ written }) => written),
        means: (value) => list.every(({ means }) => means(value)),
      },
    ]),
    fc.array(tie('condition'), { maxLength: 3 }).map((list): readonly [string, Condition] => [
      'or',
      {
        written: list.map(({ written }) => written),
        means: (value) => list.some(({ means }) => means(value)),
      },
    ]),
    tie('condition').map(({ written, means }): readonly [string, Condition] => [
      'not',
      { written, means: (value) => !means(value) },
    ]),
  ),
}));

test('a filter selects the events that its conditions mean', () => {
  fc.assert(
    fc.property(condition, fc.array(data, { minLength: 1, maxLength: 5 }), ({ written, means }, values) => {
      // Fewer than 100 conditions.
      fc.pre(JSON.stringify(written).length < 600);
      const wants = compileFilter(written);
      for (const value of values) assert.equal(wants(value), means(value), JSON.stringify([written, value]));
    }),
    { numRuns: 2_000 },
  );
});

test('a filter is refused with its place, or tests any data without an error', () => {
  const name = fc.oneof(member, fc.constantFrom('and', 'or', 'not', 'eq', 'in', 'null', 'lt', 'prefix'));
  const { record } = fc.letrec<{ anything: unknown; record: Json }>((tie) => ({
    record: fc
      .uniqueArray(fc.tuple(name, tie('anything')), {
        selector: ([each]) => each,
        minLength: 1,
        maxLength: 2,
      })
      .map(objectOf),
    anything: fc.oneof(
      { depthSize: 'small' },
      scalar,
      fc.constant(null),
      tie('record'),
      fc.array(fc.oneof(scalar, tie('record')), { maxLength: 3 }),
    ),
  }));
  fc.assert(
    fc.property(
      fc.oneof({ weight: 9, arbitrary: record }, { weight: 1, arbitrary: fc.jsonValue() }),
      fc.array(data, { maxLength: 3 }),
      (filter, values) => {
        let wants: (value: unknown) => unknown;
        try {
          wants = compileFilter(filter);
        } catch (error) {
          assert.ok(error instanceof FilterError, String(error));
          assert.match(error.message, /^filter/);
          return;
        }
        for (const value of values) assert.equal(typeof wants(value), 'boolean');
      },
    ),
    { numRuns: 2_000 },
  );
});

test('a filter has bounds', () => {
  const nested = (levels: number): unknown => (levels === 0 ? { a: 1 } : { not: nested(levels - 1) });
  compileFilter(nested(9));
  assert.throws(() => compileFilter(nested(10)), FilterError);
  // Deeper than the stack of the compiler would bear.
  assert.throws(() => compileFilter(nested(5_000)), FilterError);
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`m${i}`, i]));
  compileFilter(many(100));
  assert.throws(() => compileFilter(many(101)), FilterError);
  assert.throws(() => compileFilter({ and: Array.from({ length: 101 }, () => ({})) }), FilterError);
  assert.throws(() => compileFilter({ a: { in: Array.from({ length: 101 }, (_, i) => i) } }), FilterError);
});

test('a pattern matches the types that begin with its words', () => {
  const word = fc.constantFrom('a', 'b', 'ab', 'a-b', '_');
  const words = fc.array(word, { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(words, words, fc.boolean(), (pattern, type, isOpen) => {
      const text = pattern.join('.') + (isOpen ? '.*' : '');
      assert.ok(isTypePattern(text));
      const expected = isOpen
        ? type.length > pattern.length && pattern.every((each, i) => each === type[i])
        : pattern.join('.') === type.join('.');
      assert.equal(matchesType(text, type.join('.')), expected);
      assert.ok(matchesType('*', type.join('.')));
    }),
  );
  for (const bad of ['', '.', 'a.', '.a', '*.a', 'a*', 'a.*.b', '**', '.*', 'a b'])
    assert.ok(!isTypePattern(bad), bad);
});
