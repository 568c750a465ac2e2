import assert from 'node:assert/strict';
import { createHook } from 'node:async_hooks';
import { describe, test } from 'node:test';
import { HttpProblem } from '@portico/transport';
import fc from 'fast-check';
import { attemptSource } from '../core/addresses.ts';
import { EmptySecretError } from '../core/passwords.ts';
import { AttemptLimit, authenticator, parseBasicAuth, semaphore, userTable } from './basic.ts';

type Verdict = Awaited<ReturnType<ReturnType<typeof authenticator>>>;

describe('authenticator', () => {
  /** The password is "one"; cheap, so that the tests are quick. */
  const ONE = '$scrypt$ln=4,r=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$Gv8AthZ78s5gdnV7aF64AQ';
  const HASHED = [{ user: 'ann', password: ONE, roles: ['ops'] }];
  const PLAIN = [{ user: 'ann', password: 'one', roles: ['ops'] }];
  const ANN = { name: 'ann', roles: ['ops'] };

  const header = (user: string, password: string) =>
    `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  const RIGHT = header('ann', 'one');

  function statusOf(verdict: Verdict): number {
    if (verdict === undefined) return 401;
    return verdict instanceof HttpProblem ? verdict.status : 200;
  }

  for (const [kind, users] of [
    ['plain', PLAIN],
    ['hashed', HASHED],
  ] as const) {
    test(`${kind}: right credentials come in, whatever else is wrong does not`, async () => {
      const authenticate = authenticator(users, { maxFailures: 10 });
      assert.deepEqual(await authenticate(RIGHT, '192.0.2.1'), ANN);
      assert.deepEqual(authenticate(RIGHT, '192.0.2.1'), ANN, 'known again at once');
      assert.deepEqual(await authenticate(RIGHT.replace('Basic', 'bASIC'), '192.0.2.1'), ANN);
      for (const wrong of [
        undefined,
        'Basic',
        header('ann', 'One'),
        header('Ann', 'one'),
        header('ann', ONE),
      ]) {
        assert.equal(await authenticate(wrong, '192.0.2.1'), undefined, String(wrong));
      }
    });

    test(`${kind}: too many failures are 429 for this address, for a minute`, async () => {
      let now = 5;
      const limited: string[] = [];
      const options = {
        maxFailures: 3,
        now: () => now,
        onLimit: (address: string) => void limited.push(address),
      };
      const authenticate = authenticator(users, options);
      assert.deepEqual(await authenticate(RIGHT, '192.0.2.2'), ANN);

      for (const guess of ['1', '2', '3']) {
        assert.equal(await authenticate(header('ann', guess), '192.0.2.1'), undefined);
      }
      assert.deepEqual(limited, ['192.0.2.1']);
      now += 100;
      for (const guess of ['4', 'one', '1']) {
        const verdict = await authenticate(header('ann', guess), '192.0.2.1');
        assert.ok(verdict instanceof HttpProblem, guess);
        assert.equal(verdict.status, 429);
        assert.equal(verdict.headers['retry-after'], '60');
      }
      assert.equal(await authenticate(undefined, '192.0.2.1'), undefined, 'no guess');
      assert.equal(await authenticate('Basic %', '192.0.2.1'), undefined, 'no guess');
      assert.deepEqual(authenticate(RIGHT, '192.0.2.2'), ANN, 'others are let in');
      assert.deepEqual(limited, ['192.0.2.1']);
      now += 60_000;
      assert.deepEqual(await authenticate(RIGHT, '192.0.2.1'), ANN);
    });

    test(`${kind}: credentials that were right from an address stay right there`, async () => {
      const authenticate = authenticator(users, { maxFailures: 2 });
      assert.deepEqual(await authenticate(RIGHT, '192.0.2.1'), ANN);
      for (const guess of ['1', '2', '3']) await authenticate(header('ann', guess), '192.0.2.1');
      assert.equal(statusOf(await authenticate(header('ann', '4'), '192.0.2.1')), 429);
      assert.deepEqual(authenticate(RIGHT, '192.0.2.1'), ANN);
    });

    test(`${kind}: success is no failure, and 0 is no limit`, async () => {
      const authenticate = authenticator(users, { maxFailures: 1 });
      for (let i = 0; i < 5; i++) assert.deepEqual(await authenticate(RIGHT, `198.51.100.${i}`), ANN);
      assert.equal(statusOf(await authenticate(header('ann', 'x'), '198.51.100.0')), 401);
      assert.equal(statusOf(await authenticate(header('ann', 'x'), '198.51.100.0')), 429);
      const unlimited = authenticator(users, { maxFailures: 0 });
      for (let i = 0; i < 30; i++)
        assert.equal(await unlimited(header('ann', `${i}`), '192.0.2.1'), undefined);
    });
  }

  test('ten failures are the default', async () => {
    const authenticate = authenticator(PLAIN, { maxFailures: 10 });
    const statuses = Array.from({ length: 12 }, (_, i) =>
      statusOf(authenticate(header('ann', `${i}`), '192.0.2.1') as Verdict),
    );
    assert.deepEqual(statuses, [...Array(10).fill(401), 429, 429]);
  });

  test('a hash is checked once for all who ask at the same time, and never again once it was right', async () => {
    const authenticate = authenticator(HASHED, { maxFailures: 1 });
    const asked = Array.from({ length: 50 }, (_, i) => authenticate(RIGHT, `198.51.100.${i % 7}`));
    assert.ok(asked.every((verdict) => verdict instanceof Promise));
    // More than the checks that may run and wait: they cannot have been one each.
    for (const verdict of await Promise.all(asked)) assert.deepEqual(verdict, ANN);
    for (let i = 0; i < 7; i++) assert.deepEqual(authenticate(RIGHT, `198.51.100.${i}`), ANN);
    const elsewhere = authenticate(RIGHT, '203.0.113.1');
    assert.ok(!(elsewhere instanceof Promise), 'no second check');
  });

  test('guesses at once count before they are known to be wrong', async () => {
    const authenticate = authenticator(HASHED, { maxFailures: 3 });
    const guesses = Array.from({ length: 20 }, (_, i) => authenticate(header('ann', `${i}`), '192.0.2.1'));
    const statuses = (await Promise.all(guesses)).map(statusOf);
    assert.deepEqual(statuses, [...Array(3).fill(401), ...Array(17).fill(429)]);
  });

  test('too many checks at once are 503, which is no failure', async () => {
    const authenticate = authenticator(HASHED, { maxFailures: 1 });
    const guesses = Array.from({ length: 40 }, (_, i) =>
      authenticate(header('ann', `${i}`), `198.51.100.${i}`),
    );
    const verdicts = await Promise.all(guesses);
    assert.deepEqual(verdicts.map(statusOf), [...Array(34).fill(401), ...Array(6).fill(503)]);
    const last = verdicts.at(-1);
    assert.ok(last instanceof HttpProblem && last.headers['retry-after'] === '1');
    assert.deepEqual(await authenticate(RIGHT, '198.51.100.39'), ANN);
    assert.equal(statusOf(await authenticate(header('ann', 'x'), '198.51.100.1')), 429);
  });
});

describe('basic auth', () => {
  const encode = (text: string | Uint8Array) => Buffer.from(text).toString('base64');

  test('the header of RFC 7617 is read, in any case of the scheme', () => {
    const expected = { user: 'Aladdin', password: 'open sesame' };
    for (const scheme of ['Basic', 'basic', 'BASIC', 'bAsIc  ']) {
      assert.deepEqual(parseBasicAuth(`${scheme} QWxhZGRpbjpvcGVuIHNlc2FtZQ==`), expected);
    }
    assert.deepEqual(parseBasicAuth('Basic dGVzdDoxMjPCow=='), { user: 'test', password: '123£' });
  });

  test('whatever is not a proper header is nobody', () => {
    const bad = [
      undefined,
      '',
      'Basic',
      'Basic ',
      'Bearer QWxhZGRpbjpvcGVuIHNlc2FtZQ==',
      'BasicQWxhZGRpbjpvcGVuIHNlc2FtZQ==',
      'Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ', // no padding
      'Basic QWxhZGRpbjpvcGVuIHNlc2FtZR==', // stray bits
      'Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ== x',
      'Basic QWxh ZGRpbjpvcGVu',
      'Basic YTo_Pz8=', // URL-safe alphabet
      `Basic ${encode('no colon')}`,
      `Basic ${encode(Uint8Array.of(0x61, 0x3a, 0xff))}`, // not UTF-8
      `Basic ${encode('user:with\u0000zero')}`,
      `Basic ${encode('us\ner:password')}`,
    ];
    for (const header of bad) assert.equal(parseBasicAuth(header), undefined, String(header));
  });

  test('every name without a colon and every password survives the header', () => {
    const printable = fc
      .string({ unit: 'grapheme' })
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones that cannot be sent.
      .map((text) => text.replace(/[\u0000-\u001f\u007f]/g, ''));
    fc.assert(
      fc.property(printable, printable, (name, password) => {
        const user = name.replaceAll(':', '');
        assert.deepEqual(parseBasicAuth(`Basic ${encode(`${user}:${password}`)}`), { user, password });
      }),
    );
  });

  test('no header makes the parser throw', () => {
    const header = fc.oneof(
      fc.string(),
      fc.uint8Array().map((bytes) => `Basic ${encode(bytes)}`),
    );
    fc.assert(fc.property(header, (text) => void parseBasicAuth(text)));
  });
});

describe('user table', () => {
  // Cheap ones of the passwords "one" and "two", so that the tests are quick.
  const ONE = '$scrypt$ln=4,r=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$Gv8AthZ78s5gdnV7aF64AQ';
  const TWO = '$argon2id$v=19$m=8,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$Q+ROdKwWtuclt2OgTW5bkw';

  test('a user comes in with exactly their own name and password', () => {
    const { byPassword, byHash } = userTable([
      { user: 'ann', password: 'a:b', roles: ['ops'] },
      { user: 'bob', password: 'secret', roles: [] },
      { user: 'ann', password: 'next', roles: ['admin'] },
    ]);
    const login = (user: string, password: string) => byPassword({ user, password });
    assert.deepEqual(login('ann', 'a:b'), { name: 'ann', roles: ['ops'] });
    assert.deepEqual(login('ann', 'next'), { name: 'ann', roles: ['admin'] });
    assert.deepEqual(login('bob', 'secret'), { name: 'bob', roles: [] });
    for (const [user, password] of [
      ['ann', 'secret'],
      ['bob', 'a:b'],
      ['ann', ''],
      ['', 'secret'],
      ['Ann', 'a:b'],
      ['ann:a', 'b '],
      ['ann:a', 'b'],
    ] as const) {
      assert.equal(login(user, password), undefined, `${user} ${password}`);
    }
    assert.equal(byHash, undefined);
    assert.equal(userTable([]).byPassword({ user: 'ann', password: 'a' }), undefined);
  });

  test('a hash is checked, and is no password itself', async () => {
    const { byPassword, byHash } = userTable([
      { user: 'ann', password: ONE, roles: ['ops'] },
      { user: 'ann', password: TWO, roles: ['admin'] },
      { user: 'bob', password: TWO, roles: [] },
      { user: 'eve', password: 'plain', roles: [] },
    ]);
    const login = async (user: string, password: string) =>
      byPassword({ user, password }) ?? (await byHash?.({ user, password }));
    assert.deepEqual(await login('ann', 'one'), { name: 'ann', roles: ['ops'] });
    assert.deepEqual(await login('ann', 'two'), { name: 'ann', roles: ['admin'] });
    assert.deepEqual(await login('bob', 'two'), { name: 'bob', roles: [] });
    assert.deepEqual(await login('eve', 'plain'), { name: 'eve', roles: [] });
    for (const [user, password] of [
      ['ann', ONE],
      ['bob', TWO],
      ['bob', 'one'],
      ['nobody', 'one'],
      ['', 'one'],
      ['eve', 'two'],
      ['ann', ''],
    ] as const) {
      assert.equal(await login(user, password), undefined, `${user} ${password}`);
    }
  });

  test('a name that does not exist costs as many checks as one that does', async () => {
    const { byHash } = userTable([
      { user: 'ann', password: ONE, roles: [] },
      { user: 'ann', password: TWO, roles: [] },
      { user: 'bob', password: TWO, roles: [] },
      { user: 'eve', password: 'plain', roles: [] },
    ]);
    let checks = 0;
    const init = (_id: number, type: string) => {
      if (/^(?:SCRYPT|ARGON2)REQUEST$/.test(type)) checks++;
    };
    const hook = createHook({ init }).enable();
    for (const user of ['ann', 'bob', 'eve', 'nobody', '']) {
      for (const password of ['one', 'wrong']) {
        checks = 0;
        await byHash?.({ user, password });
        assert.equal(checks, 2, `${user} ${password}`);
      }
    }
    hook.disable();
  });

  test('a user who could not log in, or whom everybody could be, is refused at the start', () => {
    for (const user of ['', 'a:b', 'a\nb']) {
      assert.throws(() => userTable([{ user, password: 'x', roles: [] }]), { code: 'USER_NAME' });
    }
    assert.throws(() => userTable([{ user: 'a', password: '', roles: [] }]), EmptySecretError);
    assert.throws(() => userTable([{ user: 'a', password: '$scrypt$x', roles: [] }]), {
      code: 'PASSWORD_HASH',
    });
  });
});

describe('attempt limit', () => {
  function limitAt(max: number, maxAddresses = 1_000) {
    const clock = { now: 0 };
    return { clock, limit: new AttemptLimit({ max, windowMs: 100, maxAddresses, now: () => clock.now }) };
  }

  test('an address waits once its failures reach the limit, until its window ends', () => {
    const { clock, limit } = limitAt(2);
    assert.equal(limit.fail('a'), false);
    assert.equal(limit.waitOf('a'), 0);
    clock.now = 30;
    assert.equal(limit.fail('a'), true);
    assert.equal(limit.waitOf('a'), 70);
    assert.equal(limit.waitOf('b'), 0);
    assert.equal(limit.fail('a'), false);
    clock.now = 99;
    assert.equal(limit.waitOf('a'), 1);
    clock.now = 100;
    assert.equal(limit.waitOf('a'), 0);
    assert.equal(limit.fail('a'), false);
  });

  test('what is forgiven was no failure', () => {
    const { limit } = limitAt(1);
    limit.fail('a');
    limit.forgive('a');
    limit.forgive('a');
    limit.forgive('unknown');
    assert.equal(limit.waitOf('a'), 0);
    limit.fail('a');
    assert.equal(limit.waitOf('a'), 100);
  });

  test('no address has more failures in a window than it may, and the table stays in its bounds', () => {
    const step = fc.oneof(
      fc.record({ address: fc.constantFrom('a', 'b', 'c', 'd', 'e') }),
      fc.record({ pause: fc.nat(60) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 3 }), (steps, max) => {
        const { clock, limit } = limitAt(max, 5);
        const failures: { readonly address: string; readonly at: number }[] = [];
        for (const given of steps) {
          if ('pause' in given) {
            clock.now += given.pause;
            continue;
          }
          const { address } = given;
          const wait = limit.waitOf(address);
          const mine = failures.filter((failure) => failure.address === address);
          if (wait === 0) {
            limit.fail(address);
            failures.push({ address, at: clock.now });
            // Windows follow each other, so that two of them may meet.
            const recent = mine.filter(({ at }) => at > clock.now - 100).length + 1;
            assert.ok(recent <= 2 * max, `${recent} of ${max}`);
          } else {
            assert.ok(wait > 0 && wait <= 100);
            assert.ok(mine.filter(({ at }) => at > clock.now - 100).length >= 1);
          }
          assert.ok(limit.size <= 5);
        }
      }),
    );
  });

  test('the address that failed first is forgotten for a new one', () => {
    const { clock, limit } = limitAt(1, 3);
    for (const address of ['a', 'b', 'c']) {
      limit.fail(address);
      clock.now += 10;
    }
    limit.fail('d');
    assert.equal(limit.size, 3);
    assert.equal(limit.waitOf('a'), 0);
    for (const address of ['b', 'c', 'd']) assert.ok(limit.waitOf(address) > 0, address);
    clock.now += 100;
    limit.fail('e');
    assert.equal(limit.size, 1);
  });

  test('IPv6 addresses of one network are one source, and a port makes no other one', () => {
    for (const [address, source] of [
      ['192.0.2.1', '192.0.2.1'],
      ['::ffff:192.0.2.1', '192.0.2.1'],
      ['::FFFF:192.0.2.1', '192.0.2.1'],
      ['::1', '0:0:0:0::/64'],
      ['::', '0:0:0:0::/64'],
      ['fe80::1%eth0', 'fe80:0:0:0::/64'],
      ['2001:db8:0:7::1', '2001:db8:0:7::/64'],
      ['2001:DB8:0:0007:1:2:3:4', '2001:db8:0:7::/64'],
      ['2001:db8:0:8::1', '2001:db8:0:8::/64'],
      ['2001:db8::1:2:3:4:5', '2001:db8:0:1::/64'],
      ['1:2:3:4:5:6:7::', '1:2:3:4::/64'],
      ['192.0.2.1:50123', '192.0.2.1'],
      ['[2001:db8:0:7::1]:50123', '2001:db8:0:7::/64'],
      ['[2001:db8:0:7::1]', '2001:db8:0:7::/64'],
      ['unix:', 'unknown'],
      ['192.0.2.1:x', 'unknown'],
      ['x'.repeat(1_000), 'unknown'],
      [undefined, 'unknown'],
    ] as const) {
      assert.equal(attemptSource(address), source, String(address));
    }
  });
});

describe('bounded gate', () => {
  const FULL = new Error('full');

  test('so many at once, so many waiting, the others refused at once; time and again', async () => {
    const run = async (
      atOnce: number,
      waiting: number,
      rounds: readonly number[],
      scheduler: fc.Scheduler,
    ) => {
      const policy = semaphore(atOnce, waiting, FULL);
      for (const tasks of rounds) {
        let running = 0;
        let most = 0;
        let started = 0;
        const all = Array.from({ length: tasks }, (_, i) =>
          policy(async () => {
            started++;
            most = Math.max(most, ++running);
            await scheduler.schedule(Promise.resolve());
            running--;
            if (i % 3 === 0) throw new Error('its own');
            return i;
          }),
        );
        const outcomes = await scheduler.waitFor(Promise.allSettled(all));
        const taken = Math.min(tasks, atOnce + waiting);
        assert.equal(started, taken);
        assert.equal(most, Math.min(tasks, atOnce));
        for (const [i, outcome] of outcomes.entries()) {
          if (outcome.status === 'fulfilled') assert.equal(outcome.value, i);
          else if (i >= taken) assert.equal(outcome.reason, FULL);
          else assert.equal(outcome.reason.message, 'its own');
        }
      }
    };
    const rounds = fc.array(fc.nat(12), { minLength: 2, maxLength: 4 });
    await fc.assert(fc.asyncProperty(fc.integer({ min: 1, max: 4 }), fc.nat(5), rounds, fc.scheduler(), run));
  });
});
