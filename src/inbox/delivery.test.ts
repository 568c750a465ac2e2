import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { DeliveryIds, formatSpan, parseMoment } from './delivery.ts';
import { headersOf, keptHeaders, parseDeliveryBody } from './delivery-body.ts';

const MAX_HEADER_BYTES = 4_096;

describe('delivery ids', () => {
  const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

  /** The time in an id, in milliseconds since 1970. */
  function timeOf(id: string): number {
    return Number.parseInt(id.slice(0, 13).replace('-', ''), 16);
  }

  test('whatever the clock does, each id is a UUID of version 7 that is larger than the one before', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.constant(0), fc.integer({ min: -5, max: 5 }), fc.integer()), { maxLength: 300 }),
        (steps) => {
          let now = 1_700_000_000_000;
          const ids = new DeliveryIds();
          let last = '';
          for (const step of steps) {
            now = Math.max(1, now + step);
            const id = ids.next(now);
            assert.match(id, UUID_V7);
            assert.ok(id > last, `${id} after ${last}`);
            assert.ok(timeOf(id) >= now);
            last = id;
          }
        },
      ),
    );
  });

  test('a millisecond that is full borrows from the next one', () => {
    const ids = new DeliveryIds();
    const made = Array.from({ length: 20_000 }, () => ids.next(1_000));
    assert.deepEqual(made.toSorted(), made);
    assert.equal(timeOf(made[0] ?? ''), 1_000);
    assert.ok(timeOf(made.at(-1) ?? '') <= 1_000 + 20_000 / 2_048);
  });

  test('two that make ids at the same time make different ones', () => {
    const all = [new DeliveryIds(), new DeliveryIds()];
    const made = all.flatMap((ids) => Array.from({ length: 10_000 }, () => ids.next(1_000)));
    assert.equal(new Set(made).size, made.length);
    assert.equal(new Set(made.map((id) => id.slice(19, 20))).size, 4, 'all variants');
  });
});

describe('delivery headers', () => {
  const headers = { 'x-a': 'a', 'x-b': 'b', cookie: 'c', 'set-cookie': ['d'] };

  test('the listed headers that came are kept, in the order of the list', () => {
    assert.equal(keptHeaders(['x-b', 'x-none', 'x-a'], headers), '{"x-b":"b","x-a":"a"}');
    assert.deepEqual(headersOf({ headers: '{"x-b":"b"}' }), { 'x-b': 'b' });
  });

  test('without any it is nothing at all', () => {
    assert.equal(keptHeaders([], headers), null);
    assert.equal(keptHeaders(['x-none', 'set-cookie'], headers), null);
    assert.deepEqual(headersOf({ headers: null }), {});
  });

  test('they are bounded in bytes: what does not fit is left out whole', () => {
    const big = 'x'.repeat(MAX_HEADER_BYTES - 6);
    const kept = (names: readonly string[]) =>
      Object.keys(headersOf({ headers: keptHeaders(names, { 'x-a': big, 'x-b': 'bb', 'x-c': '' }) }));
    assert.deepEqual(kept(['x-a', 'x-b', 'x-c']), ['x-a', 'x-c']);
    assert.deepEqual(kept(['x-b', 'x-a']), ['x-b']);
  });
});

describe('delivery body', () => {
  const FORM = 'application/x-www-form-urlencoded';
  const parse = (text: string, contentType: string | null = FORM, source = 'github') =>
    parseDeliveryBody({ source, contentType, body: Buffer.from(text) });
  const payload = (text: string) => `payload=${encodeURIComponent(text)}`;

  test('the JSON in the field payload of a form', () => {
    assert.deepEqual(parse(payload('{"ref":"main","n":[1,{"é":"€+&="}]}')), {
      ref: 'main',
      n: [1, { é: '€+&=' }],
    });
    assert.deepEqual(parse(`other=1&${payload(' {"a":1}')}`), { a: 1 });
  });

  test('a form without JSON is its fields', () => {
    assert.deepEqual(parse('command=%2Fdeploy&text=now'), { command: '/deploy', text: 'now' });
    assert.deepEqual(parse('payload=plain&b=2'), { payload: 'plain', b: '2' });
    assert.deepEqual(parse('payload=1&payload={}'), { payload: ['1', '{}'] });
  });

  test('JSON is JSON, whatever its label, and a form without its label is none', () => {
    for (const text of ['{"a":1}', ' \n[{"a":1}]']) assert.deepEqual(parse(text), JSON.parse(text));
    assert.deepEqual(parse('"text"', 'application/json'), 'text');
    for (const label of [null, 'application/json', 'text/plain']) {
      assert.throws(() => parse('a=1', label), { status: 400 });
    }
  });

  test('/webhook itself takes no form', () => {
    assert.throws(() => parse('a=1', FORM, ''), { status: 400 });
    assert.deepEqual(parse('{"event":"e"}', FORM, ''), { event: 'e' });
  });

  test('the JSON of a form is as strict as any', () => {
    const deep = `{"a":${'['.repeat(100)}${']'.repeat(100)}}`;
    for (const text of ['{', '{"a":1}}', '{"__proto__":1}', deep]) {
      assert.throws(() => parse(payload(text)), { status: 400 }, text.slice(0, 20));
    }
  });
});

describe('moment', () => {
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
});
