import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { verify } from '../../../test/support/verify-request.ts';
import { type HmacParams, hmac } from './hmac.ts';
import type { RequestHeaders } from './scheme.ts';
import { UnsignableError } from './scheme-error.ts';
import { bodyAlone, readTemplate, timestampAndBody } from './template.ts';

const BODY = Buffer.from('{"event":"new_commit"}');
const base: HmacParams = {
  header: 'x-signature',
  algorithm: 'sha256',
  encoding: 'hex',
  prefix: '',
  timestampHeader: undefined,
  tolerance: 300,
  template: bodyAlone.fill,
};
const timed: HmacParams = { ...base, timestampHeader: 'x-time', template: timestampAndBody.fill };

const no = (reason: string) => ({ ok: false, reason });
const check = (params: HmacParams, headers: RequestHeaders, now = 1_700_000_000_000) =>
  verify(hmac(params).verifier(['old', 'secret']), headers, BODY, now);
const mac = (algorithm: string, text: string) => createHmac(algorithm, 'secret').update(text);

test('every algorithm and encoding, with a prefix', () => {
  for (const algorithm of ['sha1', 'sha256', 'sha512'] as const) {
    for (const encoding of ['hex', 'base64'] as const) {
      const params = { ...base, algorithm, encoding, prefix: `${algorithm} = ` };
      const signature = `${algorithm} = ${mac(algorithm, BODY.toString()).digest(encoding)}`;
      assert.deepEqual(check(params, { 'x-signature': signature }), { ok: true });
      assert.deepEqual(hmac(params).signer(['secret', 'old'])({ id: '1', timestamp: 1, body: BODY }), {
        'x-signature': signature,
      });
      assert.deepEqual(check(params, { 'x-signature': signature.slice(9) }), no('malformed-signature'));
    }
  }
});

test('the published test case 2 of RFC 4231', () => {
  const signature = '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843';
  const verifier = hmac(base).verifier(['Jefe']);
  const body = Buffer.from('what do ya want for nothing?');
  assert.deepEqual(verify(verifier, { 'x-signature': signature }, body, 0), { ok: true });
});

test('digits in either case, since many senders write them in upper case', () => {
  const signature = mac('sha256', BODY.toString()).digest('hex').toUpperCase();
  assert.deepEqual(check(base, { 'x-signature': signature }), { ok: true });
  assert.deepEqual(check(base, { 'x-signature': `${signature}00` }), no('malformed-signature'));
});

test('a signature of another algorithm has the wrong length', () => {
  for (const algorithm of ['sha1', 'sha512']) {
    const signature = mac(algorithm, BODY.toString()).digest('hex');
    assert.deepEqual(check(base, { 'x-signature': signature }), no('malformed-signature'));
  }
});

test('a timestamp is signed and must be near', () => {
  const signature = mac('sha256', `1700000000.${BODY}`).digest('hex');
  const headers = { 'x-signature': signature, 'x-time': '1700000000' };
  assert.deepEqual(check(timed, headers), { ok: true });
  assert.deepEqual(check(timed, headers, 1_700_000_300_999), { ok: true });
  assert.deepEqual(check(timed, headers, 1_700_000_301_000), no('too-old'));
  assert.deepEqual(check(timed, headers, 1_699_999_699_000), no('too-new'));
  assert.deepEqual(check({ ...timed, tolerance: 0 }, headers, 0), { ok: true });
  assert.deepEqual(check(timed, { 'x-signature': signature }), no('no-timestamp'));
  assert.deepEqual(check(timed, { ...headers, 'x-time': '1700000000junk' }), no('malformed-timestamp'));
  assert.deepEqual(check(timed, { ...headers, 'x-time': '1700000001' }), no('wrong-signature'));
});

test('a template signs other headers, as the bytes that were sent, around the body', () => {
  const template = readTemplate('{header:X-Id}:{body}:end')?.fill;
  assert.ok(template);
  const params = { ...base, template };
  const id = Buffer.from('größer').toString('latin1');
  const signature = mac('sha256', `größer:${BODY}:end`).digest('hex');
  const headers = { 'x-signature': signature, 'x-id': id };
  assert.deepEqual(check(params, headers), { ok: true });
  assert.deepEqual(check(params, { ...headers, 'x-id': 'other' }), no('wrong-signature'));
  assert.deepEqual(check(params, { 'x-signature': signature }), no('no-signed-header'));
  const sign = hmac(params).signer(['secret']);
  const request = { id: '1', timestamp: 1, body: BODY };
  assert.deepEqual(sign({ ...request, headers: { 'x-id': id } }), { 'x-signature': signature });
  assert.throws(() => sign(request), UnsignableError);
});

test('a missing header', () => {
  assert.deepEqual(check(base, {}), no('no-signature'));
});
