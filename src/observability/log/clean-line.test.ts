import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { lineCleaner } from './clean-line.ts';

const clean = (entry: unknown, ...secrets: string[]) =>
  JSON.parse(lineCleaner({ texts: secrets })(JSON.stringify(entry))) as unknown;

test('credentials in headers, however spelled and however deep', () => {
  const secret = 'a "quoted" \\ secret, with: all';
  const request = {
    headers: { Authorization: secret, COOKIE: secret, 'x-webhook-token': secret, a: 'kept' },
  };
  assert.deepEqual(clean({ err: { cause: { request } }, list: [{ 'Set-Cookie': [secret, secret] }] }), {
    err: {
      cause: {
        request: {
          headers: { Authorization: '******', COOKIE: '******', 'x-webhook-token': '******', a: 'kept' },
        },
      },
    },
    list: [{ 'Set-Cookie': '******' }],
  });
  assert.deepEqual(clean({ rawHeaders: ['Host', 'h', 'Authorization', secret, 'A', 'kept'] }), {
    rawHeaders: ['Host', 'h', 'Authorization', '******', 'A', 'kept'],
  });
  assert.deepEqual(clean({ head: 'GET / HTTP/1.1\r\nAuthorization: Basic eA==\r\nHost: h\r\n' }), {
    head: 'GET / HTTP/1.1\r\nAuthorization: ******\r\nHost: h\r\n',
  });
});

test('known secrets wherever they stand, as JSON writes them', () => {
  for (const secret of ['canary-1', 'with "quotes"', 'back\\slash', 'tab\tand\u0001', 'grüße', '$&$1']) {
    assert.deepEqual(clean({ msg: `it was ${secret}!`, [secret]: [secret] }, secret), {
      msg: 'it was ******!',
      '******': ['******'],
    });
  }
});

test('a secret that looks like a number is not taken out of numbers', () => {
  assert.deepEqual(clean({ port: 1_234_567, ms: 0.123456, msg: 'is 123456' }, '123456'), {
    port: 1_234_567,
    ms: 0.123456,
    msg: 'is ******',
  });
});

test('whatever is logged and whatever is secret, a line stays JSON and has no secret in its texts', () => {
  const secret = fc.oneof(fc.string({ minLength: 6 }), fc.stringMatching(/^[\d.e+-]{6,9}$/));
  fc.assert(
    fc.property(fc.jsonValue(), secret, fc.string(), (value, known, around) => {
      fc.pre(!'******'.includes(known) && !known.includes('*'));
      const line = JSON.stringify({ value, msg: `${around}${known}${around}` });
      const { msg } = JSON.parse(lineCleaner({ texts: [known] })(line)) as { msg: string };
      assert.ok(!msg.includes(known));
    }),
    { numRuns: 1_000 },
  );
});

test('a long line does not take long', () => {
  const started = process.cpuUsage().user;
  for (const piece of ['cookie: ', '"cookie","', '\\"', 'authorization']) {
    lineCleaner({ texts: ['canary'] })(JSON.stringify({ msg: piece.repeat(100_000) }));
  }
  const seconds = (process.cpuUsage().user - started) / 1e6;
  assert.ok(seconds < 5, `${seconds} s`);
});

test('a secret that becomes known later is hidden from then on', () => {
  const secrets = { texts: [] as readonly string[] };
  const cleanLine = lineCleaner(secrets);
  assert.equal(cleanLine('{"msg":"canary"}'), '{"msg":"canary"}');
  secrets.texts = ['canary'];
  assert.equal(cleanLine('{"msg":"canary"}'), '{"msg":"******"}');
});
