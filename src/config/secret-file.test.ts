import assert from 'node:assert/strict';
import { test } from 'node:test';
import { optionOf } from './options/options.ts';
import { isPassword } from './secret-file.ts';

const SOUND = `$scrypt$ln=15,r=8,p=3$${'A'.repeat(22)}$${'A'.repeat(43)}`;

test('a password is a text or a hash that can be checked', () => {
  const { kind, secret } = optionOf('management.password');
  assert.ok(secret);
  for (const text of ['a', ' ', 'pässwörd 😀', '$', '$money$', '$x$y$z', SOUND, SOUND.slice(1)]) {
    assert.equal(kind.fromText(text), text);
    assert.equal(kind.fromValue(text), text);
  }
  for (const text of [
    '',
    'a\nb',
    '$scrypt$',
    SOUND.slice(0, -25),
    SOUND.replace('ln=15', 'ln=22'),
    '$argon2id$v=19$m=4000000,t=3,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA',
    '$2b$10$abcdefghijklmnopqrstuv',
  ]) {
    assert.ok(!isPassword(text), text);
    assert.equal(kind.fromText(text), undefined, text);
    assert.equal(kind.fromValue(text), undefined, text);
  }
  assert.equal(kind.fromValue(1), undefined);
});
