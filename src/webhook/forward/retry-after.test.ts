import assert from 'node:assert/strict';
import { test } from 'node:test';
import { retryAfterMs } from './retry-after.ts';

const NOW = Date.UTC(2026, 0, 2, 3, 4, 5);
const DAY = 86_400_000;

test('seconds and dates, from now on', () => {
  assert.equal(retryAfterMs('0', NOW), 0);
  assert.equal(retryAfterMs('120', NOW), 120_000);
  assert.equal(retryAfterMs(new Date(NOW + 90_000).toUTCString(), NOW), 90_000);
  assert.equal(retryAfterMs('Fri, 02 Jan 2026 03:05:05 GMT', NOW), 60_000);
});

test('a time that has passed is now, and no receiver puts us off for more than a day', () => {
  assert.equal(retryAfterMs(new Date(NOW - 90_000).toUTCString(), NOW), 0);
  assert.equal(retryAfterMs('86401', NOW), DAY);
  assert.equal(retryAfterMs('9999999999', NOW), DAY);
  assert.equal(retryAfterMs(new Date(NOW + 10 * DAY).toUTCString(), NOW), DAY);
});

test('any other text is ignored', () => {
  for (const header of [undefined, '', 'soon', '99999999999999999999', '1e9999', 'x1']) {
    assert.equal(retryAfterMs(header, NOW), undefined, String(header));
  }
});
