import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { MEDIA_TYPES, mediaTypeFor } from './management-errors.ts';

const [V3, V2, JSON_TYPE] = MEDIA_TYPES;

const cases: readonly (readonly [accept: string | undefined, expected: string])[] = [
  [undefined, V3],
  ['', V3],
  ['*/*', V3],
  ['application/*', V3],
  [V3, V3],
  [V2, V2],
  [JSON_TYPE, JSON_TYPE],
  ['APPLICATION/JSON; charset=utf-8', JSON_TYPE],
  [`${JSON_TYPE}, ${V2}, ${V3}`, V3],
  [`${JSON_TYPE}, ${V2}`, V2],
  [`${V3};q=0.5, ${JSON_TYPE}`, JSON_TYPE],
  [`${V2};q=0.9,${JSON_TYPE};q=0.8`, V2],
  // A type that is named is wanted more than one that a star covers.
  ['application/json, text/plain, */*', JSON_TYPE],
  ['application/json;q=0.1, */*', V3],
  // A type that is refused is not covered by a star.
  [`${V3};q=0, */*`, V2],
  [`*/*, ${V3};q=0.0, ${V2};q=0.000`, JSON_TYPE],
  // Nothing of ours is wanted: v3 all the same.
  ['text/html', V3],
  ['*/*;q=0', V3],
  ['application/json;q=0', V3],
  ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', V3],
  // What has no proper weight is as good as not there.
  [`${V2};q=nonsense`, V3],
  [',;,', V3],
];

for (const [accept, expected] of cases) {
  test(`Accept ${accept ?? 'absent'}`, () => assert.equal(mediaTypeFor(accept), expected));
}

test('every header gets one of ours', () => {
  fc.assert(fc.property(fc.string(), (accept) => assert.ok(MEDIA_TYPES.includes(mediaTypeFor(accept)))));
});
