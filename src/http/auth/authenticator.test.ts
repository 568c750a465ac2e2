import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HttpProblem } from '../problem.ts';
import { authenticator, type Verdict } from './authenticator.ts';

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
    const authenticate = authenticator(users);
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
    for (let i = 0; i < 30; i++) assert.equal(await unlimited(header('ann', `${i}`), '192.0.2.1'), undefined);
  });
}

test('ten failures are the default', async () => {
  const authenticate = authenticator(PLAIN);
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
