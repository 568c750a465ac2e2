import assert from 'node:assert/strict';
import { generateKeyPairSync, sign, verify } from 'node:crypto';
import { test } from 'node:test';
import { UnusableSecretError } from './scheme-error.ts';
import { readStandardKey, standardKeyProblem } from './standard-keys.ts';

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
  for (const text of [`whsk_${seed.toString('base64')}`, `whsk_${both}`, `whpk_${open.toString('base64')}`]) {
    const key = readStandardKey(text);
    assert.ok(key.kind === 'pair');
    assert.ok(verify(null, Buffer.from('text'), key.publicKey, signature));
    assert.equal(key.privateKey === undefined, text.startsWith('whpk_'));
    if (key.privateKey) assert.deepEqual(sign(null, Buffer.from('text'), key.privateKey), signature);
  }
});
