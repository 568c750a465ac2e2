import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { negotiateResultType, RESULT_TYPES } from './requests.ts';

const { legacy, modern } = RESULT_TYPES;

const accepted: Readonly<Record<string, string | undefined>> = {
  '*/*': legacy,
  'application/*': legacy,
  [legacy]: legacy,
  [modern]: modern,
  'APPLICATION/GraphQL-Response+JSON': modern,
  [`${modern}; charset=utf-8`]: modern,
  [`${modern}, ${legacy}`]: modern,
  [`${legacy}, ${modern}`]: modern,
  [`${modern};q=0.9, ${legacy}`]: legacy,
  [`${legacy};q=0.9, ${modern}`]: modern,
  [`${modern};q=0.5, ${legacy};q=0.5`]: modern,
  [`${legacy}, */*;q=0.1`]: legacy,
  [`${modern}, */*;q=0.1`]: modern,
  [`${legacy};q=0, */*`]: modern,
  [`${modern};q=0, */*`]: legacy,
  'application/*;q=0.5, */*;q=0.1': legacy,
  [`text/html, ${modern};q=0.2, application/*;q=0.1`]: modern,
  'text/html, application/xhtml+xml, */*;q=0.8': legacy,
  [`${legacy}, ${legacy};q=0`]: legacy,
  // Neither: a 406.
  '': undefined,
  'text/html': undefined,
  'text/*': undefined,
  'application/xml, text/plain': undefined,
  'application/graphql+json': undefined,
  '*/*;q=0': undefined,
  [`${legacy};q=0`]: undefined,
  [`${legacy};q=0, ${modern};q=0, */*;q=0`]: undefined,
  'application/*;q=0, */*': undefined,
  [`${legacy};q=nonsense`]: undefined,
};

test('an absent Accept header takes anything, which older clients mean', () => {
  assert.equal(negotiateResultType(undefined), legacy);
});

for (const [accept, type] of Object.entries(accepted)) {
  test(`"${accept}" gets ${type ?? 'a refusal'}`, () => {
    assert.equal(negotiateResultType(accept), type);
  });
}

const weight = fc.nat(1_000).map((n) => n / 1_000);
const range = fc.constantFrom(legacy, modern, 'application/*', '*/*', 'text/html', 'text/*');
const members = fc.uniqueArray(fc.tuple(range, weight), { selector: ([name]) => name });
const written = (list: readonly (readonly [string, number])[]) =>
  list.map(([name, q]) => `${name};q=${q}`).join(', ');

test('the heavier type wins, by its most specific range, and nothing unwanted is sent', () => {
  fc.assert(
    fc.property(members, (list) => {
      const weights = new Map<string, number>(list);
      const weightOf = (name: string) =>
        [name, 'application/*', '*/*'].map((each) => weights.get(each)).find((q) => q !== undefined) ?? 0;
      const [old, young] = [weightOf(legacy), weightOf(modern)];
      const type = negotiateResultType(written(list));
      if (old === 0 && young === 0) assert.equal(type, undefined);
      else if (old !== young) assert.equal(type, old > young ? legacy : modern);
      else assert.equal(type, weights.has(modern) ? modern : legacy, 'the modern one has to be named');
    }),
    { numRuns: 300 },
  );
});

test('the order of the members means nothing', () => {
  fc.assert(
    fc.property(members, (list) => {
      assert.equal(negotiateResultType(written(list)), negotiateResultType(written(list.toReversed())));
    }),
  );
});

test('any text gets one of the two types or a refusal', () => {
  const soup = fc.string({
    unit: fc.constantFrom(legacy, modern, '*/*', 'application/*', ';q=0', ';', ',', '=', '1', ' '),
  });
  fc.assert(
    fc.property(fc.oneof(fc.string(), soup), (accept) => {
      assert.ok([legacy, modern, undefined].includes(negotiateResultType(accept)));
    }),
  );
});
