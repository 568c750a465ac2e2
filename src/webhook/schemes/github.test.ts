import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { verify } from '../../../test/support/verify-request.ts';
import { github } from './github.ts';
import { UnusableSecretError } from './scheme-error.ts';
import { textSecretProblem } from './text-secret.ts';

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
