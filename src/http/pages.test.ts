import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { acceptsGzip } from './pages.ts';

describe('acceptsGzip', () => {
  const cases: readonly (readonly [string | undefined, boolean])[] = [
    [undefined, false],
    ['', false],
    ['identity', false],
    ['gzip, deflate, br, zstd', true],
    ['GZIP', true],
    ['br;q=0.5, gzip;q=0.8', true],
    ['br, gzip;q=0', false],
    ['*', true],
    ['*;q=0.1, gzip;q=0', false],
    ['gzip;q=0.5, identity', false],
    ['gzip;q=0.5, identity;q=0.4', true],
    ['identity;q=0', false],
    ['deflate', false],
  ];
  for (const [header, expected] of cases) {
    it(`is ${expected} for ${header}`, () => assert.equal(acceptsGzip(header), expected));
  }
});
