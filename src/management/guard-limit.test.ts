import assert from 'node:assert/strict';
import { test } from 'node:test';
import Fastify from 'fastify';
import { captureLog } from '../../test/support/log-capture.ts';
import { managementApp } from '../../test/support/management-app.ts';
import { trustProxy } from '../config/options/doors.ts';
import { hashPassword } from '../core/passwords.ts';

const basic = (user: string, password: string) => ({
  authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
});
const USERS = [{ user: 'ann', password: 'right', roles: ['ops'] }];

test('after ten failures an address gets 429, whatever it sends; what was right there before stays right', async () => {
  const { stream, entries } = captureLog();
  await using app = await managementApp({ users: USERS }, Fastify({ logger: { level: 'warn', stream } }));
  const ask = (headers: Record<string, string>, remoteAddress = '192.0.2.1', url = '/actuator/info') =>
    app.inject({ url, headers, remoteAddress });
  assert.equal((await ask(basic('ann', 'right'), '192.0.2.2')).statusCode, 200);

  for (let i = 0; i < 10; i++) {
    // A browser asks without credentials first: that is no attempt, nor is what no user could send.
    assert.equal((await ask({})).statusCode, 401);
    assert.equal((await ask({ authorization: 'Basic x' })).statusCode, 401);
    assert.equal((await ask(basic('ann', `${i}`), '192.0.2.1', `/actuator/${i}`)).statusCode, 401);
  }
  for (const password of ['wrong', 'right']) {
    const response = await ask(basic('ann', password));
    assert.equal(response.statusCode, 429);
    assert.match(String(response.headers['retry-after']), /^(?:60|[1-5]?\d)$/);
    assert.equal(response.headers['www-authenticate'], undefined);
    assert.equal(response.headers['cache-control'], 'no-store');
    assert.deepEqual(response.json(), {
      status: 429,
      error: 'Too Many Requests',
      message: 'Too many failed log-ins from here; wait a while',
    });
  }
  assert.equal((await ask(basic('ann', 'right'), '192.0.2.2')).statusCode, 200);
  assert.equal((await ask(basic('ann', 'right'), '192.0.2.3')).statusCode, 200);
  assert.deepEqual(
    entries.map(({ msg, address }) => [msg, address]),
    [['too many failed log-ins to the management door', '192.0.2.1']],
  );
});

test('behind a trusted proxy the client is counted, not the proxy', async () => {
  const proxy = '192.0.2.1';
  await using app = await managementApp({ users: USERS }, Fastify({ trustProxy: [proxy] }));
  const ask = async (client: string, password: string, remoteAddress = proxy) => {
    const headers = { ...basic('ann', password), 'x-forwarded-for': client };
    return (await app.inject({ url: '/actuator/info', headers, remoteAddress })).statusCode;
  };
  for (let i = 0; i < 10; i++) assert.equal(await ask('198.51.100.1', `${i}`), 401);
  assert.equal(await ask('198.51.100.1', 'right'), 429);
  assert.equal(await ask('198.51.100.2', 'right'), 200);
  // The client cannot name another address before its own, nor send the header past the proxy.
  assert.equal(await ask('203.0.113.9, 198.51.100.1', 'right'), 429);
  for (let i = 0; i < 10; i++) assert.equal(await ask(`203.0.113.${i}`, `${i}`, '198.51.100.3'), 401);
  assert.equal(await ask('203.0.113.10', 'right', '198.51.100.3'), 429);
});

test('neither a port that the proxy forwards nor a list that its client has begun makes another client', async () => {
  for (const [trusted, forwarded] of [
    [['192.0.2.1'], (i: number) => `198.51.100.1:${50_000 + i}`],
    [['192.0.2.1'], (i: number) => `203.0.113.${i}, 198.51.100.1`],
    [['true'], (i: number) => `203.0.113.${i}, 198.51.100.1`],
    // The proxies in a row are named, the client is none of them.
    [['192.0.2.1', '10.0.0.0/8'], (i: number) => `10.0.0.${i}, 203.0.113.${i}, 198.51.100.1, 10.0.0.1`],
    [['192.0.2.1'], (i: number) => `unknown-${i}`],
  ] as const) {
    await using app = await managementApp({ users: USERS }, Fastify({ trustProxy: trustProxy(trusted) }));
    const ask = async (client: string, password: string) => {
      const headers = { ...basic('ann', password), 'x-forwarded-for': client };
      return (await app.inject({ url: '/actuator/info', headers, remoteAddress: '192.0.2.1' })).statusCode;
    };
    for (let i = 0; i < 10; i++) assert.equal(await ask(forwarded(i), `${i}`), 401);
    assert.equal(await ask(forwarded(10), 'right'), 429, forwarded(10));
    assert.equal(await ask('198.51.100.2', 'right'), 200);
  }
});

test('without a trusted proxy a forged address changes nothing', async () => {
  await using app = await managementApp({ users: USERS });
  const ask = async (client: string, password: string) => {
    const headers = { ...basic('ann', password), 'x-forwarded-for': client };
    return (await app.inject({ url: '/actuator/info', headers })).statusCode;
  };
  for (let i = 0; i < 10; i++) assert.equal(await ask(`203.0.113.${i}`, `${i}`), 401);
  assert.equal(await ask('203.0.113.10', 'right'), 429);
});

for (const algorithm of ['scrypt', 'argon2id'] as const) {
  test(`a user with an ${algorithm} hash`, async () => {
    const password = await hashPassword('right', algorithm);
    const users = [
      { user: 'ann', password, roles: ['ops'] },
      { user: 'bob', password, roles: [] },
      { user: 'eve', password: 'plain', roles: ['ops'] },
    ];
    let written = 0;
    const endpoints = [{ id: 'mine', write: () => void written++ }];
    await using app = await managementApp({ users, role: 'ops', endpoints });
    const status = async (user: string, secret: string) => {
      const headers = { ...basic(user, secret), 'content-type': 'application/json' };
      const request = { method: 'POST', url: '/actuator/mine', headers, payload: '{}' } as const;
      const responses = await Promise.all([app.inject(request), app.inject(request)]);
      assert.equal(responses[0].statusCode, responses[1].statusCode);
      return responses[0].statusCode;
    };
    assert.equal(await status('ann', 'wrong'), 401);
    assert.equal(await status('ann', password), 401);
    assert.equal(await status('zoe', 'right'), 401);
    assert.equal(await status('bob', 'right'), 403);
    assert.equal(written, 0);
    assert.equal(await status('ann', 'right'), 204);
    assert.equal(await status('eve', 'plain'), 204);
    assert.equal(written, 4);
  });
}

test('a hash that cannot be checked makes no door', async () => {
  const users = [
    { user: 'ann', password: '$scrypt$ln=30,r=8,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA', roles: [] },
  ];
  await assert.rejects(async () => managementApp({ users }), { code: 'PASSWORD_HASH' });
});
