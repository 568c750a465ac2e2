import assert from 'node:assert/strict';
import { generateKeyPairSync, sign, verify as verifyOfCrypto } from 'node:crypto';
import { describe, test } from 'node:test';
import { type Verdict, verify } from '../../test/support/signed-requests.ts';
import { UnsignableError, UnusableSecretError } from './hmac.ts';
import type { RequestHeaders } from './schemes.ts';
import { readStandardKey, standard, standardKeyProblem } from './standard.ts';

describe('standard', () => {
  // The vectors of the Standard Webhooks libraries for JavaScript (v1) and Go (v1a).
  const ID = 'msg_p5jXN8AQM9LWM0D4loKWxJek';
  const TIMESTAMP = 1_614_265_330;
  const NOW = TIMESTAMP * 1000;
  const BODY = Buffer.from('{"test": 2432232314}');
  const SHARED = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
  const V1 = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=';
  const SEED = 'whsk_VEVTVFNJR05JTkdLRVlET05PVFVTRVRISVNGT1JBTlk=';
  const PUBLIC = 'whpk_ZlN4eg7dSSqi0moX9hQUk3orrOouK3QVQSlJa248c/g=';
  const V1A = 'v1a,tQ9V2XOqn7jL/DQenEFpqIugdBVtiMmER5mhSkXBNwM0mkATuDe6KYYUuxqtaiHeYGb7KaaBRdM5WqyeFiL8Ag==';
  const DECOY = 'Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc=';
  const OTHER = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;

  const params = { headerPrefix: 'webhook', tolerance: 300 };
  const ok: Verdict = { ok: true };
  const no = (reason: string) => ({ ok: false, reason });

  function headersWith(signature: string, more: RequestHeaders = {}): RequestHeaders {
    return {
      'webhook-id': ID,
      'webhook-timestamp': String(TIMESTAMP),
      'webhook-signature': signature,
      ...more,
    };
  }

  function check(
    secrets: readonly string[],
    headers: RequestHeaders,
    { body = BODY, now = NOW }: { body?: Uint8Array; now?: number } = {},
  ): Verdict {
    return verify(standard(params).verifier(secrets), headers, body, now);
  }

  describe('the public vectors', () => {
    test('v1', () => {
      assert.deepEqual(check([SHARED], headersWith(V1)), ok);
      const sign = standard(params).signer([SHARED]);
      assert.deepEqual(sign({ id: ID, timestamp: TIMESTAMP, body: BODY }), headersWith(V1));
    });

    test('v1a, with the public key, the seed and the private key that has its public key behind it', () => {
      const parts = [SEED, PUBLIC].map((text) => Buffer.from(text.slice(5), 'base64'));
      const both = `whsk_${Buffer.concat(parts).toString('base64')}`;
      for (const key of [PUBLIC, SEED, both]) assert.deepEqual(check([key], headersWith(V1A)), ok);
      for (const key of [SEED, both]) {
        const sign = standard(params).signer([key]);
        assert.deepEqual(sign({ id: ID, timestamp: TIMESTAMP, body: BODY }), headersWith(V1A));
      }
    });

    test('the decoy of the libraries', () => {
      assert.deepEqual(check([SHARED], headersWith(`v1,${DECOY}`)), no('wrong-signature'));
      assert.deepEqual(check([PUBLIC], headersWith(`v1a,${DECOY}`)), no('malformed-signature'));
      const among = `v1,${DECOY} v2,${DECOY} ${V1} v1,${DECOY}`;
      assert.deepEqual(check([SHARED], headersWith(among)), ok);
      const amongOthers = `v1,${DECOY} v2,${DECOY} ${V1A} v1,${DECOY}`;
      assert.deepEqual(check([PUBLIC], headersWith(amongOthers)), ok);
    });
  });

  test('any secret and any signature may match, of both kinds at once', () => {
    assert.deepEqual(check([OTHER, SHARED], headersWith(V1)), ok);
    assert.deepEqual(check([SHARED, OTHER], headersWith(V1)), ok);
    assert.deepEqual(check([OTHER, PUBLIC], headersWith(`v1,${DECOY} ${V1A}`)), ok);
    assert.deepEqual(check([OTHER, PUBLIC, SHARED], headersWith(`${V1} v1a,AAAA`)), ok);
    assert.deepEqual(check([OTHER], headersWith(V1)), no('wrong-signature'));
    assert.deepEqual(check([], headersWith(`${V1} ${V1A}`)), no('wrong-signature'));
  });

  test('a signature counts for its own kind of key only', () => {
    assert.deepEqual(check([PUBLIC], headersWith(V1)), no('wrong-signature'));
    assert.deepEqual(check([SHARED], headersWith(V1A)), no('wrong-signature'));
    // The public key is known to everybody and must not serve as a shared secret.
    const forged = standard(params).signer([PUBLIC.replace('whpk_', 'whsec_')]);
    const headers = forged({ id: ID, timestamp: TIMESTAMP, body: BODY });
    assert.deepEqual(check([PUBLIC], headers), no('wrong-signature'));
  });

  test('while a key is rotated both sign, and either side may be ahead', () => {
    const sign = standard(params).signer([OTHER, SHARED, SEED]);
    const headers = sign({ id: ID, timestamp: TIMESTAMP, body: BODY });
    for (const key of [OTHER, SHARED, SEED, PUBLIC]) assert.deepEqual(check([key], headers), ok);
  });

  test('a missing or malformed header is refused before the body is looked at', () => {
    const verifier = standard(params).verifier([SHARED]);
    for (const [more, reason] of [
      [{ 'webhook-id': undefined }, 'no-id'],
      [{ 'webhook-id': '' }, 'malformed-id'],
      [{ 'webhook-id': `${ID}, ${ID}` }, 'malformed-id'],
      [{ 'webhook-id': [ID, ID] }, 'no-id'],
      [{ 'webhook-id': 'msg.1' }, 'malformed-id'],
      [{ 'webhook-id': 'msg\u00e9' }, 'malformed-id'],
      [{ 'webhook-id': 'm'.repeat(257) }, 'malformed-id'],
      [{ 'webhook-timestamp': undefined }, 'no-timestamp'],
      [{ 'webhook-timestamp': `${TIMESTAMP}junk` }, 'malformed-timestamp'],
      [{ 'webhook-timestamp': `${TIMESTAMP}, ${TIMESTAMP}` }, 'malformed-timestamp'],
      [{ 'webhook-timestamp': String(TIMESTAMP - 301) }, 'too-old'],
      [{ 'webhook-timestamp': String(TIMESTAMP + 301) }, 'too-new'],
      [{ 'webhook-signature': undefined }, 'no-signature'],
      [{ 'webhook-signature': [V1] }, 'no-signature'],
      [{ 'webhook-signature': `${V1}, ${V1}` }, 'malformed-signature'],
      [{ 'webhook-signature': '' }, 'malformed-signature'],
      [{ 'webhook-signature': 'v1,' }, 'malformed-signature'],
      [{ 'webhook-signature': V1.slice(3) }, 'malformed-signature'],
      [{ 'webhook-signature': V1.replace('v1', 'v2') }, 'malformed-signature'],
      [{ 'webhook-signature': V1.slice(0, 10) }, 'malformed-signature'],
      [{ 'webhook-signature': V1.replace('=', '') }, 'malformed-signature'],
      // The same bytes in another spelling: the last two bits are not used.
      [{ 'webhook-signature': V1.replace('OE=', 'OF=') }, 'malformed-signature'],
      [{ 'webhook-signature': `${`v1,${DECOY} `.repeat(15)}${V1}` }, undefined],
      [{ 'webhook-signature': `${`v1,${DECOY} `.repeat(16)}${V1}` }, 'too-many-signatures'],
      [{ 'webhook-signature': `${V1} `.repeat(100_000) }, 'too-many-signatures'],
      [{ 'webhook-signature': `v1,${'A'.repeat(1_000_000)}` }, 'malformed-signature'],
    ] as const) {
      const step = verifier(headersWith(V1, more), NOW);
      const found = typeof step === 'function' ? undefined : step;
      assert.equal(found, reason, JSON.stringify(more).slice(0, 80));
    }
  });

  test('the window is as wide as configured, on both sides, and 0 takes it away', () => {
    const at = (tolerance: number, now: number) =>
      verify(standard({ ...params, tolerance }).verifier([SHARED]), headersWith(V1), BODY, now);
    assert.deepEqual(at(300, NOW + 300_999), ok);
    assert.deepEqual(at(300, NOW + 301_000), no('too-old'));
    assert.deepEqual(at(300, NOW - 300_000), ok);
    assert.deepEqual(at(300, NOW - 300_001), no('too-new'));
    assert.deepEqual(at(10, NOW + 11_000), no('too-old'));
    assert.deepEqual(at(0, NOW + 1e12), ok);
    assert.deepEqual(at(0, 0), ok);
  });

  test('parts of the body cannot pass for parts of the id and the timestamp', () => {
    const sign = standard(params).signer([SHARED]);
    const signed = sign({ id: 'msg_1', timestamp: 1_600_000_000, body: Buffer.from(`${TIMESTAMP}.{}`) });
    const shifted = headersWith(signed['webhook-signature'] ?? '', { 'webhook-id': 'msg_1.1600000000' });
    assert.deepEqual(check([SHARED], shifted, { body: Buffer.from('{}') }), no('malformed-id'));
  });

  test('the body counts byte for byte, not as the text it decodes to', () => {
    const sign = standard(params).signer([SHARED, SEED]);
    const [body, other] = [0xff, 0xfe].map((byte) => Buffer.from([0x22, byte, 0x22]));
    assert.ok(body && other && body.toString() === other.toString());
    const headers = sign({ id: ID, timestamp: TIMESTAMP, body });
    for (const key of [SHARED, PUBLIC]) {
      assert.deepEqual(check([key], headers, { body }), ok);
      assert.deepEqual(check([key], headers, { body: other }), no('wrong-signature'));
    }
  });

  test('headers may have another prefix, and then those of the usual name mean nothing', () => {
    const verifier = standard({ ...params, headerPrefix: 'svix' }).verifier([SHARED]);
    const sign = standard({ ...params, headerPrefix: 'svix' }).signer([SHARED]);
    const headers = sign({ id: ID, timestamp: TIMESTAMP, body: BODY });
    assert.deepEqual(Object.keys(headers), ['svix-id', 'svix-timestamp', 'svix-signature']);
    assert.deepEqual(verify(verifier, headers, BODY, NOW), ok);
    assert.deepEqual(verify(verifier, headersWith(V1), BODY, NOW), no('no-signature'));
  });

  test('unsignable requests are reported', () => {
    assert.throws(() => standard(params).signer([PUBLIC]), UnusableSecretError);
    assert.throws(() => standard(params).signer([]), UnusableSecretError);
    assert.throws(() => standard(params).verifier(['secret']), UnusableSecretError);
    const sign = standard(params).signer([SHARED]);
    for (const id of ['', 'a.b', 'a b', 'é', 'x'.repeat(257)]) {
      assert.throws(() => sign({ id, timestamp: TIMESTAMP, body: BODY }), UnsignableError);
    }
  });
});

describe('standard keys', () => {
  const base64 = (length: number) => Buffer.alloc(length, 7).toString('base64');

  test('a shared secret has 24 to 64 bytes, with or without padding', () => {
    for (const length of [24, 25, 32, 63, 64]) {
      const padded = base64(length);
      for (const text of [padded, padded.replace(/=+$/, '')]) {
        const key = readStandardKey(`whsec_${text}`);
        assert.ok(key.kind === 'shared');
        assert.deepEqual(Buffer.from(key.secret), Buffer.alloc(length, 7));
      }
    }
  });

  test('an invalid key is refused with its required form, and not shown', () => {
    const strong = base64(32);
    for (const [text, problem] of [
      ['', /whsec_, whpk_ or whsk_/],
      [strong, /whsec_, whpk_ or whsk_/],
      [`WHSEC_${strong}`, /whsec_, whpk_ or whsk_/],
      [` whsec_${strong}`, /whsec_, whpk_ or whsk_/],
      ['whsec_', /24 to 64 bytes/],
      [`whsec_${base64(23)}`, /24 to 64 bytes/],
      [`whsec_${base64(65)}`, /24 to 64 bytes/],
      [`whsec_${strong}\n`, /24 to 64 bytes/],
      [`whsec_${strong.replace('B', '-')}`, /24 to 64 bytes/],
      [`whpk_${base64(31)}`, /32 bytes/],
      [`whpk_${base64(64)}`, /32 bytes/],
      [`whsk_${base64(33)}`, /32 or 64 bytes/],
      [`whsk_${base64(64)}`, /public key that belongs to it/],
    ] as const) {
      assert.match(standardKeyProblem(text) ?? '', problem, text);
      assert.throws(
        () => readStandardKey(text),
        (error) =>
          error instanceof UnusableSecretError &&
          error.code === 'UNUSABLE_SECRET' &&
          problem.test(error.message) &&
          !error.message.includes('BwcH'),
      );
    }
    assert.equal(standardKeyProblem(`whsec_${strong}`), undefined);
  });

  test('a private key signs, alone or with its public key, and the public key verifies', () => {
    const pair = generateKeyPairSync('ed25519');
    const { d = '', x = '' } = pair.privateKey.export({ format: 'jwk' });
    const seed = Buffer.from(d, 'base64url');
    const open = Buffer.from(x, 'base64url');
    const both = Buffer.concat([seed, open]).toString('base64');
    const signature = sign(null, Buffer.from('text'), pair.privateKey);
    for (const text of [
      `whsk_${seed.toString('base64')}`,
      `whsk_${both}`,
      `whpk_${open.toString('base64')}`,
    ]) {
      const key = readStandardKey(text);
      assert.ok(key.kind === 'pair');
      assert.ok(verifyOfCrypto(null, Buffer.from('text'), key.publicKey, signature));
      assert.equal(key.privateKey === undefined, text.startsWith('whpk_'));
      if (key.privateKey) assert.deepEqual(sign(null, Buffer.from('text'), key.privateKey), signature);
    }
  });
});
