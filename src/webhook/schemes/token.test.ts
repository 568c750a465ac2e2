import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verify } from '../../../test/support/verify-request.ts';
import { UnusableSecretError } from './scheme-error.ts';
import { token } from './token.ts';

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
