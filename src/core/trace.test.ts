import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { anyCharacter } from '../../test/support/random.ts';
import {
  nextSpan,
  readStoredTrace,
  readTraceContext,
  storedTrace,
  traceFields,
  traceHeaders,
  traceparentOf,
} from './trace.ts';

const EXAMPLE = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

const hex = (length: number) =>
  fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: length, maxLength: length });
const traceId = hex(32).filter((id) => /[^0]/.test(id));
const spanId = hex(16).filter((id) => /[^0]/.test(id));
const flags = fc.integer({ min: 0, max: 3 });
const key = fc.stringMatching(/^[a-z][a-z0-9_\-*/]{0,20}$/);
const value = fc.stringMatching(/^[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,20}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/);
const state = fc
  .uniqueArray(fc.tuple(key, value), { selector: ([name]) => name, minLength: 1, maxLength: 10 })
  .map((members) => members.map(([name, text]) => `${name}=${text.trimStart() || 'x'}`).join(','));
const context = fc.record(
  { traceId, spanId, flags, state: fc.option(state, { nil: undefined }) },
  { noNullPrototype: true },
);

test('what is written is read back, from headers and from the database', () => {
  fc.assert(
    fc.property(context, (one) => {
      const headers = traceHeaders(one);
      assert.deepEqual(readTraceContext(headers.traceparent, headers.tracestate), one);
      assert.deepEqual(readStoredTrace(storedTrace(one)), one);
      const next = nextSpan(one);
      assert.deepEqual({ ...next, spanId: one.spanId }, one);
      assert.notEqual(next.spanId, one.spanId);
      assert.ok(readTraceContext(traceparentOf(next)));
    }),
  );
});

test('any other text is no parent', () => {
  const strict = /^00-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}$/;
  const later = /^(?!ff|00)[\da-f]{2}-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}(?:-[!-~]*)?$/;
  const almost = fc
    .tuple(fc.constant(EXAMPLE), fc.nat(EXAMPLE.length), fc.nat(2), fc.string({ maxLength: 3 }))
    .map(([text, at, removed, put]) => text.slice(0, at) + put + text.slice(at + removed));
  fc.assert(
    fc.property(fc.oneof(almost, fc.string(), fc.string({ unit: anyCharacter })), (text) => {
      assert.equal(readTraceContext(text) !== undefined, strict.test(text) || later.test(text), text);
    }),
    { numRuns: 2_000 },
  );
});

test('the examples of the specification', () => {
  assert.deepEqual(readTraceContext(EXAMPLE, 'congo=t61rcWkgMzE, rojo=00f067aa0ba902b7,,'), {
    traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
    spanId: '00f067aa0ba902b7',
    flags: 1,
    state: 'congo=t61rcWkgMzE,rojo=00f067aa0ba902b7',
  });
  for (const [parent, valid] of [
    [EXAMPLE.toUpperCase(), false],
    [`${EXAMPLE}-extra`, false],
    [EXAMPLE.replace('00', 'cc'), true],
    [`${EXAMPLE.replace('00', 'cc')}-what-the-future-brings`, true],
    [`${EXAMPLE.replace('00', 'cc')}.what`, false],
    [EXAMPLE.replace('00', 'ff'), false],
    [`${EXAMPLE}, ${EXAMPLE}`, false],
    [[EXAMPLE, EXAMPLE], false],
    [undefined, false],
  ] as const) {
    assert.equal(readTraceContext(parent) !== undefined, valid, String(parent));
  }
  assert.equal(
    readTraceContext(EXAMPLE.replace(/01$/, 'ff'))?.flags,
    3,
    'flags of later versions are dropped',
  );
  for (const invalid of ['foo', 'foo=', '=1', 'a=1,a=2', 'A=1', 'a=b=c', 'é=1', `a=${'b'.repeat(600)}`]) {
    assert.equal(readTraceContext(EXAMPLE, invalid)?.state, undefined, invalid);
  }
  const members = (count: number) => Array.from({ length: count }, (_, i) => `k${i}=v`).join(',');
  assert.ok(readTraceContext(EXAMPLE, members(32))?.state);
  assert.equal(readTraceContext(EXAMPLE, members(33))?.state, undefined);
  assert.ok(readTraceContext(EXAMPLE, '1tenant@vendor=x')?.state);
});

test('a log entry has the fields of a trace only where one came', () => {
  assert.deepEqual(traceFields({}), {});
  assert.deepEqual(traceFields({ traceparent: 'no' }), {});
  assert.deepEqual(traceFields({ traceparent: EXAMPLE }), {
    traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
    spanId: '00f067aa0ba902b7',
  });
});
