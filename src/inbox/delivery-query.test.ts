import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readCount, readFilter } from './delivery-query.ts';

const NOW = Date.UTC(2026, 0, 31, 12);

function texts(given: Readonly<Record<string, string>>) {
  const problems: string[] = [];
  return { text: (field: string) => given[field], name: (field: string) => `--${field}`, problems };
}

test('a filter has only the given fields', () => {
  assert.deepEqual(readFilter(texts({}), NOW), {});
  const all = { status: 'dead', event: 'e', source: '', since: '2h', until: '2026-01-31T11:00Z' };
  assert.deepEqual(readFilter(texts(all), NOW), {
    status: 'dead',
    event: 'e',
    source: '',
    since: NOW - 7_200_000,
    until: NOW - 3_600_000,
  });
});

test('all problems are reported, with a suggestion', () => {
  const query = texts({ status: 'deat', since: 'now', until: '\u001b[31m' });
  readFilter(query, NOW);
  assert.deepEqual(query.problems, [
    '--status must be one of unhandled, processing, pending, dead, done, discarded; did you mean dead?',
    '--since must be an ISO 8601 time like 2026-01-31T14:00Z, or how long ago like 15m, 2h or 3d, not "now"',
    '--until must be an ISO 8601 time like 2026-01-31T14:00Z, or how long ago like 15m, 2h or 3d, not "\\u001b[31m"',
  ]);
});

test('a count is a whole number in its range', () => {
  assert.equal(readCount(texts({}), 'limit', 20), 20);
  assert.equal(readCount(texts({ limit: '7' }), 'limit', 20, 10), 7);
  for (const limit of ['', '0', '-1', '1.5', '1e3', '011', '11', '9'.repeat(20), ' 1']) {
    const query = texts({ limit });
    assert.equal(readCount(query, 'limit', 20, 10), 20, limit);
    assert.match(query.problems.join(), /^--limit must be a whole number from 1 to 10, not /);
  }
});
