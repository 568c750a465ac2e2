import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { verify } from '../../../test/support/verify-request.ts';
import { UnusableSecretError } from './scheme-error.ts';
import { stripe } from './stripe.ts';

// Made with Stripe's own library.
const SECRET = 'whsec_test_secret';
const TIMESTAMP = 1_614_265_330;
const BODY = Buffer.from('{"id":"evt_test_webhook","object":"event"}');
const SIGNATURE = '3c5817089d739023dd6190f70a3757e04f7a2fd8b5dab12c2e000f51970dccff';
const HEADER = `t=${TIMESTAMP},v1=${SIGNATURE}`;
const WRONG = SIGNATURE.replace('3', '4');

const no = (reason: string) => ({ ok: false, reason });
const ok = { ok: true };

function check(header: string | string[] | undefined, options: Partial<typeof defaults> = {}) {
  const { secrets, tolerance, now, body } = { ...defaults, ...options };
  return verify(stripe(tolerance).verifier(secrets), { 'stripe-signature': header }, body, now);
}
const defaults = {
  secrets: [SECRET] as readonly string[],
  tolerance: 300,
  now: TIMESTAMP * 1000,
  body: BODY as Uint8Array,
};

test('the vector', () => {
  assert.deepEqual(check(HEADER), ok);
  const sign = stripe(300).signer([SECRET]);
  assert.deepEqual(sign({ id: '1', timestamp: TIMESTAMP, body: BODY }), { 'stripe-signature': HEADER });
});

test('every v1 is tried, other schemes are ignored', () => {
  assert.deepEqual(check(`t=${TIMESTAMP},v1=${WRONG},v1=${SIGNATURE}`), ok);
  assert.deepEqual(check(`t=${TIMESTAMP},v1=${SIGNATURE},v1=${WRONG}`), ok);
  assert.deepEqual(check(`v1=${SIGNATURE},v0=${WRONG},t=${TIMESTAMP},v2,=,v1=`), ok);
  assert.deepEqual(check(`t=${TIMESTAMP},v1=${WRONG},v0=${SIGNATURE}`), no('wrong-signature'));
  assert.deepEqual(check(`t=${TIMESTAMP},v0=${SIGNATURE}`), no('malformed-signature'));
});

test('any of several secrets, and a signature for each while one is rotated', () => {
  assert.deepEqual(check(HEADER, { secrets: ['other', SECRET] }), ok);
  assert.deepEqual(check(HEADER, { secrets: ['other'] }), no('wrong-signature'));
  assert.deepEqual(check(HEADER, { secrets: [] }), no('wrong-signature'));
  const sign = stripe(300).signer(['new', SECRET]);
  const { 'stripe-signature': header } = sign({ id: '1', timestamp: TIMESTAMP, body: BODY });
  for (const secret of ['new', SECRET]) assert.deepEqual(check(header, { secrets: [secret] }), ok);
  assert.throws(() => stripe(300).signer([]), UnusableSecretError);
});

test('the window, both ways', () => {
  for (const [seconds, verdict] of [
    [300, ok],
    [301, no('too-old')],
    [-300, ok],
    [-301, no('too-new')],
    // A day ahead.
    [-86_400, no('too-new')],
  ] as const) {
    assert.deepEqual(check(HEADER, { now: (TIMESTAMP + seconds) * 1000 }), verdict);
  }
  assert.deepEqual(check(HEADER, { now: 0, tolerance: 0 }), ok);
});

test('a time that is missing, repeated or no time', () => {
  assert.deepEqual(check(`v1=${SIGNATURE}`), no('no-timestamp'));
  assert.deepEqual(check(`t=,v1=${SIGNATURE}`), no('malformed-timestamp'));
  assert.deepEqual(check(`t=${TIMESTAMP}junk,v1=${SIGNATURE}`), no('malformed-timestamp'));
  assert.deepEqual(check(`t=${TIMESTAMP},t=${TIMESTAMP},v1=${SIGNATURE}`), no('malformed-timestamp'));
  // What is signed is the text of the time, and it must also be the time that counts.
  const junk = createHmac('sha256', SECRET).update(`${TIMESTAMP}junk.`).update(BODY).digest('hex');
  assert.deepEqual(check(`t=${TIMESTAMP}junk,v1=${junk}`), no('malformed-timestamp'));
});

test('headers that are missing, repeated, malformed or huge', () => {
  assert.deepEqual(check(undefined), no('no-signature'));
  assert.deepEqual(check([HEADER, HEADER]), no('no-signature'));
  assert.deepEqual(check(`${HEADER}, ${HEADER}`), no('malformed-signature'));
  assert.deepEqual(check(`t=${TIMESTAMP}, v1=${SIGNATURE}`), no('malformed-signature'));
  for (const header of ['', ',', 't', `t=${TIMESTAMP}`, `t=${TIMESTAMP},v1`, HEADER.toUpperCase()]) {
    assert.deepEqual(check(header), no('malformed-signature'), header);
  }
  assert.deepEqual(check(`t=${TIMESTAMP}${`,v1=${WRONG}`.repeat(30)},v1=${SIGNATURE}`), ok);
  assert.deepEqual(check(`${HEADER}${`,v1=${WRONG}`.repeat(31)}`), no('too-many-signatures'));
  assert.deepEqual(check(','.repeat(1_000_000)), no('too-many-signatures'));
});

test('another body', () => {
  assert.deepEqual(check(HEADER, { body: Buffer.from(`${BODY} `) }), no('wrong-signature'));
  assert.deepEqual(check(HEADER, { body: new Uint8Array() }), no('wrong-signature'));
});
