import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isPassword } from '../../core/passwords.ts';
import { optionOf } from './options.ts';

test('addresses are plain web URLs; only that of the server may hold credentials', () => {
  const server = optionOf('management.springBootAdmin.url').kind;
  const own = optionOf('management.springBootAdmin.managementUrl').kind;
  for (const url of ['http://sba', 'https://sba:8443/admin/', 'HTTP://[::1]:1', 'http://10.0.0.1/a/b']) {
    assert.equal(server.fromText(url), url);
    assert.equal(own.fromValue(url), url);
  }
  for (const url of ['http://me:pw@sba', 'https://me@sba/x']) {
    assert.equal(server.fromText(url), url);
    assert.equal(own.fromText(url), undefined, url);
  }
  for (const url of [
    '',
    'sba:8080',
    'ftp://sba',
    'http:sba',
    'http:///sba',
    'http://sba:99999',
    'http://sba/?x=1',
    'http://sba#x',
    'http://s ba',
    'http:\\\\sba',
    ' http://sba',
    'http://sba\n',
  ]) {
    assert.equal(server.fromText(url), undefined, url);
    assert.equal(own.fromText(url), undefined, url);
  }
  assert.equal(server.fromValue(new URL('http://sba')), undefined);
});

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
