import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatSpan, parseMoment } from './moment.ts';

const NOW = Date.UTC(2026, 0, 31, 12);

test('how long ago', () => {
  for (const [text, ms] of [
    ['0s', 0],
    ['90s', 90_000],
    ['15m', 900_000],
    ['2h', 7_200_000],
    ['3d', 259_200_000],
    ['1w', 604_800_000],
  ] as const) {
    assert.equal(parseMoment(text, NOW), NOW - ms, text);
  }
});

test('ISO 8601, with a zone or in local time', () => {
  for (const [text, moment] of [
    ['2026-01-31T14:00Z', Date.UTC(2026, 0, 31, 14)],
    ['2026-01-31T14:00:30.25+02:00', Date.UTC(2026, 0, 31, 12, 0, 30, 250)],
    ['2026-01-31T14:00', new Date(2026, 0, 31, 14).getTime()],
    ['2026-01-31', new Date(2026, 0, 31).getTime()],
    ['2024-02-29', new Date(2024, 1, 29).getTime()],
  ] as const) {
    assert.equal(parseMoment(text, NOW), moment, text);
  }
});

test('anything else is no moment', () => {
  for (const text of [
    '',
    '15',
    'm',
    '-5m',
    '1.5h',
    '15 m',
    '15M',
    '1y',
    'yesterday',
    '2026-02-30',
    '2026-02-29T00:00Z',
    '2026-13-01',
    '2026-01-31T25:00Z',
    '2026-01-31T14Z',
    '2026-01-31 14:00',
    '2026-01-31T14:00+99:00',
    '20260131',
    '1769860800000',
  ]) {
    assert.equal(parseMoment(text, NOW), undefined, text);
  }
});

test('every time that a program writes is read back', () => {
  fc.assert(
    fc.property(
      fc.date({ min: new Date('1970-01-01'), max: new Date('9999-12-31'), noInvalidDate: true }),
      (date) => {
        assert.equal(parseMoment(date.toISOString(), NOW), date.getTime());
      },
    ),
  );
});

test('a span is written in its largest unit, and can be read back', () => {
  for (const [ms, text] of [
    [-5, '0s'],
    [999, '0s'],
    [59_999, '59s'],
    [60_000, '1m'],
    [3_599_999, '59m'],
    [7_200_000, '2h'],
    [86_400_000 * 6, '6d'],
    [86_400_000 * 21, '3w'],
  ] as const) {
    assert.equal(formatSpan(ms), text);
  }
  fc.assert(
    fc.property(fc.nat({ max: 10 ** 12 }), (ms) => {
      const read = NOW - (parseMoment(formatSpan(ms), NOW) ?? Number.NaN);
      assert.ok(read <= ms && read > ms / 2 - 1_000);
    }),
  );
});
