import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { RATE } from './access.ts';
import { optionOf } from './options.ts';

const { kind } = optionOf('rest.cors.origins');

test('an origin is what browsers write, and nothing that no browser would send', () => {
  const origin = fc
    .webUrl({ withFragments: false, withQueryParameters: false })
    .map((url) => new URL(url).origin);
  fc.assert(fc.property(origin, (text) => isDeepStrictEqual(kind.fromText(text), [text])));
  for (const good of [
    '*',
    'http://localhost:3000',
    'https://a.example,https://b.example:8443',
    'app://local',
  ]) {
    assert.deepEqual(kind.fromText(good), good.split(','), good);
  }
  for (const bad of [
    'a.example',
    'https://a.example/',
    'https://A.example',
    'https://a.example:443',
    'null',
    'https://*.example',
  ]) {
    assert.equal(kind.fromText(bad), undefined, bad);
  }
  fc.assert(fc.property(fc.string(), (text) => void kind.fromText(text)));
});

test('a rate is a count and a unit', () => {
  for (const good of ['1/s', '9999999/h', '100/m']) assert.ok(RATE.test(good), good);
  fc.assert(fc.property(fc.string(), (text) => !RATE.test(text) || /^\d+\/[smh]$/.test(text)));
  for (const bad of ['0/s', '1/d', '-1/s', '1.5/s', '10', '10/s ', '99999999/s'])
    assert.ok(!RATE.test(bad), bad);
});
