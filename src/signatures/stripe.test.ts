import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, test } from 'node:test';
import { verify } from '../../test/support/signed-requests.ts';
import { github, slack, stripe, textSecretProblem, token, UnusableSecretError } from './hmac.ts';
import type { RequestHeaders } from './schemes.ts';

describe('github', () => {
  // The example of GitHub's documentation.
  const SECRET = "It's a Secret to Everybody";
  const BODY = Buffer.from('Hello, World!');
  const SIGNATURE = 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17';

  const no = (reason: string) => ({ ok: false, reason });
  const check = (secrets: readonly string[], signature: string | string[], body: Uint8Array = BODY) =>
    verify(github.verifier(secrets), { 'x-hub-signature-256': signature }, body, 0);

  test('the public vector', () => {
    assert.deepEqual(check([SECRET], SIGNATURE), { ok: true });
    const headers = github.signer([SECRET])({ id: '1', timestamp: 0, body: BODY });
    assert.deepEqual(headers, { 'x-hub-signature-256': SIGNATURE });
  });

  test('any of several secrets', () => {
    assert.deepEqual(check(['other', SECRET, 'größer'], SIGNATURE), { ok: true });
    assert.deepEqual(check(['other'], SIGNATURE), no('wrong-signature'));
    assert.deepEqual(check([], SIGNATURE), no('wrong-signature'));
    const headers = github.signer(['größer', SECRET])({ id: '1', timestamp: 0, body: BODY });
    assert.deepEqual(verify(github.verifier(['größer']), headers, BODY, 0), { ok: true });
  });

  test('another body', () => {
    for (const body of ['', 'Hello, World', 'Hello, World!\n', 'hello, World!']) {
      assert.deepEqual(check([SECRET], SIGNATURE, Buffer.from(body)), no('wrong-signature'));
    }
  });

  test('malformed signatures', () => {
    for (const text of [
      '',
      'sha256=',
      SIGNATURE.slice(7),
      SIGNATURE.toUpperCase(),
      SIGNATURE.replace('sha256', 'sha1'),
      SIGNATURE.slice(0, -1),
      `${SIGNATURE}0`,
      `${SIGNATURE}, ${SIGNATURE}`,
      ` ${SIGNATURE}`,
      `sha256=${'0'.repeat(1_000_000)}`,
    ]) {
      assert.deepEqual(check([SECRET], text), no('malformed-signature'), text.slice(0, 80));
    }
    assert.deepEqual(check([SECRET], [SIGNATURE, SIGNATURE]), no('no-signature'));
    assert.deepEqual(verify(github.verifier([SECRET]), {}, BODY, 0), no('no-signature'));
  });

  test('the old header with SHA-1 alone is refused, and passes for nothing beside the new one', () => {
    const old = `sha1=${createHmac('sha1', SECRET).update(BODY).digest('hex')}`;
    const verifier = github.verifier([SECRET]);
    assert.deepEqual(verify(verifier, { 'x-hub-signature': old }, BODY, 0), no('sha1-only'));
    const wrong = SIGNATURE.replace('7', '8');
    const both = { 'x-hub-signature': old, 'x-hub-signature-256': wrong };
    assert.deepEqual(verify(verifier, both, BODY, 0), no('wrong-signature'));
    assert.deepEqual(check([SECRET], old), no('malformed-signature'));
  });

  test('a secret is a text', () => {
    for (const secret of ['', ' ', 'a\n', '\ta', 'a ', 'a\u0000b']) {
      assert.match(textSecretProblem(secret) ?? '', /^must be a text/);
      assert.throws(() => github.verifier([secret]), UnusableSecretError);
    }
    assert.equal(textSecretProblem(SECRET), undefined);
    assert.throws(() => github.signer([]), UnusableSecretError);
  });
});

describe('slack', () => {
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
  const check = (
    more: RequestHeaders,
    { tolerance = 300, now = TIMESTAMP * 1000, secrets = [SECRET] } = {},
  ) => verify(slack(tolerance).verifier(secrets), { ...HEADERS, ...more }, BODY, now);

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
});

describe('stripe', () => {
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
});

describe('token', () => {
  const params = 'x-gitlab-token';
  const no = (reason: string) => ({ ok: false, reason });
  const check = (value: string | string[] | undefined) =>
    verify(token(params).verifier(['old', 'größer']), { 'x-gitlab-token': value }, new Uint8Array(), 0);

  test('any of the secrets, as Latin-1 and as UTF-8', () => {
    assert.deepEqual(check('old'), { ok: true });
    assert.deepEqual(check('größer'), { ok: true });
    assert.deepEqual(check(Buffer.from('größer').toString('latin1')), { ok: true });
  });

  test('any other value', () => {
    for (const value of ['', 'ol', 'OLD', 'old, old', 'old,größer', ' old', 'x'.repeat(1_000_000)]) {
      assert.deepEqual(check(value), no('wrong-token'), value.slice(0, 80));
    }
    assert.deepEqual(check(undefined), no('no-token'));
    assert.deepEqual(check(['old', 'old']), no('no-token'));
  });

  test('without a secret nothing passes, and an empty one is refused', () => {
    const verifier = token(params).verifier([]);
    assert.deepEqual(verify(verifier, { 'x-gitlab-token': '' }, new Uint8Array(), 0), no('wrong-token'));
    assert.throws(() => token(params).verifier(['fine', '']), UnusableSecretError);
  });

  test('the signer presents the first secret, in bytes that a header can carry', () => {
    const sign = token(params).signer(['größer', 'old']);
    const headers = sign({ id: '1', timestamp: 0, body: new Uint8Array() });
    assert.deepEqual(headers, { 'x-gitlab-token': Buffer.from('größer').toString('latin1') });
    assert.deepEqual(check(headers['x-gitlab-token']), { ok: true });
  });
});
