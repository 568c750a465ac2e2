import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type ContentCoding, chooseCoding } from './pages.ts';

const both: readonly ContentCoding[] = ['br', 'gzip'];

describe('chooseCoding', () => {
  const cases: readonly (readonly [string | undefined, ContentCoding | undefined])[] = [
    [undefined, undefined],
    ['', undefined],
    ['identity', undefined],
    ['gzip, deflate, br, zstd', 'br'],
    ['gzip, deflate', 'gzip'],
    ['GZIP', 'gzip'],
    ['br;q=0.5, gzip;q=0.8', 'gzip'],
    ['br;q=0, gzip', 'gzip'],
    ['br;q=0, gzip;q=0', undefined],
    ['*', 'br'],
    ['*;q=0.1, br;q=0', 'gzip'],
    ['gzip;q=0.5, identity', undefined],
    ['gzip;q=0.5, identity;q=0.4', 'gzip'],
    ['identity;q=0', undefined],
    ['deflate', undefined],
  ];
  for (const [header, expected] of cases) {
    it(`answers ${header} with ${expected ?? 'the plain file'}`, () =>
      assert.equal(chooseCoding(header, both), expected));
  }

  it('chooses only among what is stored', () => {
    assert.equal(chooseCoding('br, gzip;q=0.1', ['gzip']), 'gzip');
    assert.equal(chooseCoding('br, gzip', []), undefined);
  });
});
