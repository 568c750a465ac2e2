import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { MAX_EMAIL, MAX_NAME, newUserSchema, readNewUser, readUserId } from './user.ts';

describe('user id', () => {
  test('ids are positive safe integers', () => {
    assert.equal(readUserId('1'), 1);
    assert.equal(readUserId('42'), 42);
    assert.equal(readUserId('9007199254740991'), Number.MAX_SAFE_INTEGER);
  });

  test('no other spelling and no other number is an id', () => {
    const others = [
      ...[
        '',
        '0',
        '-1',
        '+1',
        '01',
        '1.0',
        '1.5',
        '1e3',
        '0x1',
        '1n',
        '1_000',
        ' 1',
        '1 ',
        '1\n',
        '\n1',
        'a',
        '1a',
      ],
      ...['NaN', 'Infinity', '%31', '1/', '1;DROP TABLE users', '１', '١', '²', '-0', '1,000'],
      ...['9007199254740992', '9007199254740993', '10000000000000000', '99999999999999999999'],
    ];
    for (const text of others) assert.equal(readUserId(text), undefined, JSON.stringify(text));
  });

  /** The definition: the one text that a positive safe integer is written as. */
  function reference(text: string): number | undefined {
    const number = Number(text);
    return Number.isSafeInteger(number) && number > 0 && String(number) === text ? number : undefined;
  }

  test('a text is an id exactly when it is how that number is written', () => {
    const limit = Number.MAX_SAFE_INTEGER;
    const text = fc.oneof(
      fc.string(),
      fc.string({ unit: fc.constantFrom(...'0123456789+-.e \n١'), maxLength: 18 }),
      fc.maxSafeInteger().map(String),
      fc.nat(20).map((n) => String(BigInt(limit) - 10n + BigInt(n))),
      fc.double().map(String),
    );
    fc.assert(
      fc.property(text, (segment) => {
        assert.equal(readUserId(segment), reference(segment));
      }),
      { numRuns: 1_000 },
    );
  });
});

describe('new user', () => {
  const named = (name: unknown) => readNewUser({ name, email: 'a@b' });
  const mailed = (email: unknown) => readNewUser({ name: 'Ada', email });

  test('a name and an email make a user, and other members are ignored', () => {
    const body = { name: 'Ada', email: 'ada@example.com', id: 7, role: 'admin' };
    assert.deepEqual(readNewUser(body), { name: 'Ada', email: 'ada@example.com' });
  });

  test('a body without both members is no user', () => {
    const bodies = [
      undefined,
      null,
      1,
      'Ada',
      true,
      [],
      ['Ada', 'a@b'],
      {},
      { name: 'Ada' },
      { email: 'a@b' },
    ];
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
    for (const email of ['a@b', 'a@b@c', '"a b"@c', 'ä@ö', 'a@b.c'])
      assert.equal(mailed(email)?.email, email);
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
});

describe('user schema', () => {
  const accepts = new Ajv2020().compile(newUserSchema);

  const piece = fc.constantFrom('a', ' ', '@', '\0', '\ud800', '\udc00', 'é', '\n', '\u3000', '');
  const text = fc.oneof(
    fc.array(piece, { maxLength: 5 }).map((pieces) => pieces.join('')),
    fc.constantFrom(MAX_NAME, MAX_NAME + 1, MAX_EMAIL, MAX_EMAIL + 1).map((length) => 'n'.repeat(length)),
    fc.constantFrom(MAX_EMAIL, MAX_EMAIL + 1).map((length) => `@${'n'.repeat(length)}`.slice(0, length)),
    fc.constantFrom(MAX_EMAIL, MAX_EMAIL + 1).map((length) => `n@${'n'.repeat(length)}`.slice(0, length)),
  );
  const value = fc.oneof({ weight: 5, arbitrary: text }, fc.constantFrom(null, 7, {}, undefined));
  const body = fc.oneof(
    { weight: 9, arbitrary: fc.record({ name: value, email: value }, { requiredKeys: [] }) },
    fc.constantFrom(null, 7, 'x', []),
  );

  test('the schema takes what the reader takes', () => {
    let taken = 0;
    fc.assert(
      fc.property(body, (given) => {
        // What JSON can say.
        const json: unknown = JSON.parse(JSON.stringify(given));
        const isUser = readNewUser(json) !== undefined;
        taken += isUser ? 1 : 0;
        // A surrogate pair is one character to a schema, and two code units to the reader.
        assert.equal(accepts(json), isUser, JSON.stringify(json));
      }),
      { numRuns: 5_000 },
    );
    assert.ok(taken > 50, `${taken} were users`);
  });
});
