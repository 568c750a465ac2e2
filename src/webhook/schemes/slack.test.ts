import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verify } from '../../../test/support/verify-request.ts';
import type { RequestHeaders } from './scheme.ts';
import { slack } from './slack.ts';

// The example of Slack's documentation.
const SECRET = '8f742231b10e8888abcd99yyyzzz85a5';
const TIMESTAMP = 1_531_420_618;
const BODY = Buffer.from(
  'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V' +
    '&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=' +
    '&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN' +
    '&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c',
);
const SIGNATURE = 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503';
const HEADERS = { 'x-slack-request-timestamp': String(TIMESTAMP), 'x-slack-signature': SIGNATURE };

const no = (reason: string) => ({ ok: false, reason });
const check = (more: RequestHeaders, { tolerance = 300, now = TIMESTAMP * 1000, secrets = [SECRET] } = {}) =>
  verify(slack(tolerance).verifier(secrets), { ...HEADERS, ...more }, BODY, now);

test('the public vector', () => {
  assert.deepEqual(check({}), { ok: true });
  const sign = slack(300).signer([SECRET]);
  assert.deepEqual(sign({ id: '1', timestamp: TIMESTAMP, body: BODY }), HEADERS);
});

test('any of several secrets', () => {
  assert.deepEqual(check({}, { secrets: ['other', SECRET] }), { ok: true });
  assert.deepEqual(check({}, { secrets: ['other'] }), no('wrong-signature'));
});

test('the window, both ways', () => {
  for (const [seconds, verdict] of [
    [300, { ok: true }],
    [301, no('too-old')],
    [-300, { ok: true }],
    [-301, no('too-new')],
  ] as const) {
    assert.deepEqual(check({}, { now: (TIMESTAMP + seconds) * 1000 }), verdict);
  }
  assert.deepEqual(check({}, { now: 0, tolerance: 0 }), { ok: true });
});

test('headers that are missing, repeated, malformed or of another version', () => {
  for (const [more, reason] of [
    [{ 'x-slack-signature': undefined }, 'no-signature'],
    [{ 'x-slack-signature': `${SIGNATURE}, ${SIGNATURE}` }, 'malformed-signature'],
    [{ 'x-slack-signature': SIGNATURE.replace('v0', 'v1') }, 'malformed-signature'],
    [{ 'x-slack-signature': SIGNATURE.toUpperCase() }, 'malformed-signature'],
    [{ 'x-slack-signature': SIGNATURE.replace('a', 'b') }, 'wrong-signature'],
    [{ 'x-slack-request-timestamp': undefined }, 'no-timestamp'],
    [{ 'x-slack-request-timestamp': `${TIMESTAMP}junk` }, 'malformed-timestamp'],
    [{ 'x-slack-request-timestamp': String(TIMESTAMP + 1) }, 'wrong-signature'],
  ] as const) {
    assert.deepEqual(check(more), no(reason), JSON.stringify(more));
  }
});
