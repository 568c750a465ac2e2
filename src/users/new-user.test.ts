import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { MAX_EMAIL, MAX_NAME, readNewUser } from './new-user.ts';

const named = (name: unknown) => readNewUser({ name, email: 'a@b' });
const mailed = (email: unknown) => readNewUser({ name: 'Ada', email });

test('a name and an email make a user, and other members are ignored', () => {
  const body = { name: 'Ada', email: 'ada@example.com', id: 7, role: 'admin' };
  assert.deepEqual(readNewUser(body), { name: 'Ada', email: 'ada@example.com' });
});

test('a body without both members is no user', () => {
  const bodies = [undefined, null, 1, 'Ada', true, [], ['Ada', 'a@b'], {}, { name: 'Ada' }, { email: 'a@b' }];
  for (const body of bodies) assert.equal(readNewUser(body), undefined);
});

test('neither may be anything but a text', () => {
  for (const value of [undefined, null, 1, true, [], {}, ['a@b'], { toString: () => 'a@b' }]) {
    assert.equal(named(value), undefined);
    assert.equal(mailed(value), undefined);
  }
});

test('a name is not blank, in any script', () => {
  for (const blank of ['', ' ', '\t\n', '\u00a0', '\u3000', '\ufeff', '\u2028'])
    assert.equal(named(blank), undefined);
  assert.deepEqual(named(' Ada ')?.name, ' Ada ', 'it is kept as it was sent');
});

test('lengths are counted in UTF-16 units, the longest one passes', () => {
  assert.equal(named('a'.repeat(MAX_NAME))?.name.length, MAX_NAME);
  assert.equal(named('a'.repeat(MAX_NAME + 1)), undefined);
  assert.ok(named('😀'.repeat(MAX_NAME / 2)));
  assert.equal(named('😀'.repeat(MAX_NAME / 2 + 1)), undefined);
  const email = (length: number) => `a@${'b'.repeat(length - 2)}`;
  assert.equal(mailed(email(MAX_EMAIL))?.email.length, MAX_EMAIL);
  assert.equal(mailed(email(MAX_EMAIL + 1)), undefined);
});

test('an email has an @ inside', () => {
  for (const email of ['a@b', 'a@b@c', '"a b"@c', 'ä@ö', 'a@b.c']) assert.equal(mailed(email)?.email, email);
  for (const email of ['', 'a', '@', 'a@', '@a', '@@', 'a.b', ' '])
    assert.equal(mailed(email), undefined, email);
});

test('text that an engine would change is refused', () => {
  for (const bad of ['\0', '\ud800', '\udc00', '\ude00\ud83d']) {
    assert.equal(named(`a${bad}b`), undefined);
    assert.equal(mailed(`a@${bad}b`), undefined);
  }
  assert.equal(named('a\u0001😀\u200d')?.name, 'a\u0001😀\u200d');
});

test('property: any body is a user that can be stored unchanged, or none', () => {
  const text = fc.oneof(
    fc.string(),
    fc.array(fc.nat(0xffff)).map((units) => String.fromCharCode(...units)),
    fc.tuple(fc.string(), fc.string()).map((parts) => parts.join('@')),
  );
  const body = fc.oneof(fc.anything(), fc.record({ name: fc.oneof(text, fc.anything()), email: text }));
  fc.assert(
    fc.property(body, (sent) => {
      const user = readNewUser(sent);
      if (user === undefined) return;
      assert.deepEqual(Object.keys(user), ['name', 'email']);
      const { name, email } = sent as Record<string, unknown>;
      assert.deepEqual(user, { name, email });
      for (const value of [user.name, user.email]) {
        assert.equal(Buffer.from(value).toString(), value, 'it has a UTF-8 form');
        assert.ok(value.trim() !== '' && !value.includes('\0'));
      }
      assert.ok(user.name.length <= MAX_NAME && user.email.length <= MAX_EMAIL);
      assert.match(user.email, /^[^@]+@.+$/su);
    }),
    { numRuns: 500 },
  );
});
