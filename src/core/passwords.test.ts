import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { rounds } from '../../test/support/proof-settings.ts';
import {
  costOf,
  decoyOf,
  EmptySecretError,
  hashPassword,
  isPasswordHash,
  PasswordHashError,
  parsePasswordHash,
  secretMatcher,
  verifyPassword,
} from './passwords.ts';

describe('password hash', () => {
  const SALT = 'c29tZXNhbHQ';
  const HASH = 'AAAAAAAAAAAAAAAAAAAAAA';
  const scrypt = (parameters: string, salt = SALT, hash = HASH) => `$scrypt$${parameters}$${salt}$${hash}`;
  const argon2id = (parameters: string, salt = SALT, hash = HASH) =>
    `$argon2id$v=19$${parameters}$${salt}$${hash}`;

  test('hashes of other programs are checked', async () => {
    // The first is from the reference implementation of Argon2, the second from RFC 7914, section 12.
    const argon = '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc';
    assert.equal(await verifyPassword('password', parsePasswordHash(argon)), true);
    assert.equal(await verifyPassword('passwore', parsePasswordHash(argon)), false);

    const derived =
      '7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2' +
      'd5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887';
    const base64 = (bytes: Buffer) => bytes.toString('base64').replaceAll('=', '');
    const text = scrypt(
      'ln=14,r=8,p=1',
      base64(Buffer.from('SodiumChloride')),
      base64(Buffer.from(derived, 'hex')),
    );
    assert.equal(await verifyPassword('pleaseletmein', parsePasswordHash(text)), true);
    assert.equal(await verifyPassword('pleaseletmeIn', parsePasswordHash(text)), false);
  });

  for (const algorithm of ['scrypt', 'argon2id'] as const) {
    test(`a new ${algorithm} hash is read again, is salted, and takes its password alone`, async () => {
      const password = 'pässwörd 😀 $';
      const text = await hashPassword(password, algorithm);
      assert.ok(isPasswordHash(text));
      assert.notEqual(text, await hashPassword(password, algorithm));
      const hash = parsePasswordHash(text);
      assert.equal(hash.algorithm, algorithm);
      assert.equal(await verifyPassword(password, hash), true);
      for (const wrong of ['', 'pässwörd 😀 ', 'passwörd 😀 $', text]) {
        assert.equal(await verifyPassword(wrong, hash), false, wrong);
      }
      const decoy = decoyOf(hash);
      assert.equal(costOf(decoy), costOf(hash));
      assert.equal(await verifyPassword(password, decoy), false);
    });
  }

  test('what is meant as a hash is told from a password', () => {
    for (const text of [
      '$scrypt$',
      '$argon2id$v=19$x',
      '$argon2i$v=19$m=8,t=1,p=1$a$b',
      `$2b$10$${'a'.repeat(53)}`,
      '$6$salt$hash',
      '$pbkdf2-sha256$29000$a$b',
    ]) {
      assert.ok(isPasswordHash(text), text);
      if (!/^\$(scrypt|argon2id)\$[lv]/.test(text)) {
        assert.throws(() => parsePasswordHash(text), PasswordHashError, text);
      }
    }
    for (const text of ['', 'scrypt$', '$crypt$x', '$money$', '$', '$2', ' $scrypt$', '$SCRYPT$x$']) {
      assert.ok(!isPasswordHash(text), text);
    }
  });

  test('a hash may not ask for gigabytes or minutes, nor for less than its algorithm takes', () => {
    const sound = [
      scrypt('ln=1,r=1,p=1'),
      scrypt('ln=18,r=8,p=1'),
      scrypt('ln=17,r=8,p=8'),
      argon2id('m=8,t=1,p=1'),
      argon2id('m=262144,t=4,p=16'),
    ];
    for (const text of sound) assert.ok(parsePasswordHash(text), text);
    const refused = [
      scrypt('ln=19,r=8,p=1'),
      scrypt('ln=18,r=9,p=1'),
      scrypt('ln=17,r=8,p=9'),
      scrypt('ln=21,r=1,p=1'),
      scrypt('ln=1000000000,r=1,p=1'),
      scrypt('ln=1,r=33,p=1'),
      scrypt('ln=1,r=1,p=17'),
      argon2id('m=262145,t=1,p=1'),
      argon2id('m=4294967295,t=1,p=1'),
      argon2id('m=262144,t=5,p=1'),
      argon2id('m=8,t=131073,p=1'),
      argon2id('m=15,t=1,p=2'),
      argon2id('m=1024,t=1,p=17'),
    ];
    for (const text of refused) {
      assert.throws(() => parsePasswordHash(text), PasswordHashError, text);
    }
  });

  test('a hash has one spelling, and a message shows nothing of it', () => {
    const refused = [
      '$scrypt$',
      scrypt('ln=10,r=8'),
      scrypt('r=8,ln=10,p=1'),
      scrypt('ln=010,r=8,p=1'),
      scrypt('ln=0,r=8,p=1'),
      scrypt('ln=10,r=8,p=1', ''),
      scrypt('ln=10,r=8,p=1', 'c29t'),
      scrypt('ln=10,r=8,p=1', `${SALT}=`),
      scrypt('ln=10,r=8,p=1', 'c29tZXNhbHR'),
      scrypt('ln=10,r=8,p=1', 'c29tZXNhb_Q'),
      scrypt('ln=10,r=8,p=1', SALT, 'AAAAAAAAAAAAAAAAAAAA'),
      scrypt('ln=10,r=8,p=1', SALT, 'A'.repeat(88)),
      `${scrypt('ln=10,r=8,p=1')}\n`,
      `${scrypt('ln=10,r=8,p=1')}$`,
      argon2id('m=64,t=1,p=1').replace('v=19', 'v=16'),
      argon2id('m=64,t=1,p=1').replace('v=19$', ''),
      argon2id('m=64,t=1,p=1').replace('argon2id', 'argon2i'),
    ];
    for (const text of refused) {
      assert.throws(
        () => parsePasswordHash(text),
        (error) => error instanceof PasswordHashError && !error.message.includes(SALT.slice(0, 4)),
        text,
      );
    }
  });

  test('any text is a hash within its bounds or a PasswordHashError', () => {
    const part = fc.oneof(
      fc.nat().map(String),
      fc.constantFrom('ln=', 'm=', 'r=', 't=', 'p=', ',', SALT, HASH),
    );
    const text = fc.oneof(
      fc.string(),
      fc
        .array(fc.oneof(part, fc.constantFrom('$', '$scrypt', '$argon2id', '$v=19')), { maxLength: 14 })
        .map((all) => all.join('')),
      fc.tuple(fc.nat(30), fc.nat(40), fc.nat(20)).map(([a, b, c]) => scrypt(`ln=${a},r=${b},p=${c}`)),
      fc.tuple(fc.nat(), fc.nat(40), fc.nat(20)).map(([a, b, c]) => argon2id(`m=${a},t=${b},p=${c}`)),
    );
    let read = 0;
    fc.assert(
      fc.property(text, (candidate) => {
        try {
          const hash = parsePasswordHash(candidate);
          const memory =
            hash.algorithm === 'scrypt' ? 2 ** hash.logN * hash.blockSize * 128 : hash.memory * 1024;
          assert.ok(memory <= 256 * 1024 * 1024, candidate);
          assert.ok(costOf(hash) <= 1024 * 1024, candidate);
          read++;
        } catch (error) {
          assert.ok(error instanceof PasswordHashError, String(error));
        }
      }),
      { numRuns: rounds(1_000), examples: [[scrypt('ln=10,r=8,p=1')], [argon2id('m=64,t=1,p=1')]] },
    );
    assert.ok(read >= 2, 'no hash within the bounds was read');
  });
});

describe('secret equal', () => {
  test('a presented secret matches when it is one of the configured ones, whichever', () => {
    const matches = secretMatcher(['old', 'new', 'größer']);
    for (const secret of ['old', 'new', 'größer']) assert.equal(matches(secret), true);
    for (const other of ['', 'ol', 'oldd', 'OLD', ' old', 'old,new', undefined]) {
      assert.equal(matches(other), false);
    }
  });

  test('a secret that is configured twice matches like any other', () => {
    assert.equal(secretMatcher(['a', 'a'])('a'), true);
  });

  test('without secrets nothing matches, and an empty secret is refused', () => {
    assert.equal(secretMatcher([])(''), false);
    assert.equal(secretMatcher([])('x'), false);
    assert.throws(() => secretMatcher(['fine', '']), EmptySecretError);
  });

  test('matching is equality of texts', () => {
    const secret = fc.string({ unit: 'grapheme', minLength: 1 });
    fc.assert(
      fc.property(fc.array(secret), secret, (configured, presented) => {
        assert.equal(secretMatcher(configured)(presented), configured.includes(presented));
        assert.equal(secretMatcher([...configured, presented])(presented), true);
      }),
    );
  });
});
