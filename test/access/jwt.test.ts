import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { keepConnection } from '../support/connections.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import { AUDIENCE, ISSUER, type Issuer, startIssuer } from './support/tokens.ts';

const ENV = {
  INTERFACES: 'rest',
  API_REQUIRED: 'all',
  API_MAX_FAILURES: '0',
  API_JWT_ISSUER: ISSUER,
  API_JWT_AUDIENCE: `${AUDIENCE},other`,
  API_JWT_CLOCK_SKEW: '60000',
};

async function startWith(jwks: string, env: Readonly<Record<string, string>> = {}): Promise<TestService> {
  const service = await startTestService({ env: { ...ENV, API_JWT_JWKS: jwks, ...env } });
  await service.listen();
  return service;
}

async function status({ urls }: TestService, token: string, method = 'GET'): Promise<number> {
  const path = method === 'GET' ? 'users' : 'delete';
  const headers = { authorization: `Bearer ${token}` };
  return (await fetch(`${urls.rest}/${path}/9`, { method, headers })).status;
}

for (const algorithm of ['RS256', 'PS384', 'ES256', 'ES512', 'EdDSA']) {
  test(`${algorithm}: a token of the issuer comes in with its scopes`, async () => {
    await using issuer = await startIssuer(algorithm);
    await using service = await startWith(issuer.url);
    const reader = await issuer.sign();
    assert.equal(await status(service, reader), 200);
    assert.equal(await status(service, reader), 200);
    assert.equal(await status(service, reader, 'DELETE'), 403);
    assert.equal(await status(service, await issuer.sign({ scope: 'users:write x' }), 'DELETE'), 404);
    assert.equal(
      await status(service, await issuer.sign({}, { kid: '' })),
      200,
      'without the name of its key',
    );
    assert.equal(issuer.asked, 1);
  });
}

test('what another has signed, or for another, or for another time, is refused', async () => {
  await using issuer = await startIssuer('RS256');
  await using stranger = await startIssuer('RS256');
  await using service = await startWith(issuer.url);
  const good = await issuer.sign();
  assert.equal(await status(service, good), 200);
  const [header = '', payload = '', signature = ''] = good.split('.');
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as object;
  // The public key as a shared secret, the old trick.
  const shared = `${encode({ alg: 'HS256', kid: 'key-1' })}.${payload}`;
  const secret = JSON.stringify(issuer.keys().keys[0]);
  for (const [what, token] of Object.entries({
    stranger: await stranger.sign(),
    'another issuer': await issuer.sign({ iss: 'https://evil.example.com' }),
    'another audience': await issuer.sign({ aud: 'somebody' }),
    expired: await issuer.sign({}, { expires: '-2m' }),
    'not yet': await issuer.sign({ nbf: Math.floor(Date.now() / 1_000) + 600 }),
    'more scopes': `${header}.${encode({ ...claims, scope: 'users:write' })}.${signature}`,
    unsigned: `${encode({ alg: 'none' })}.${payload}.`,
    'no signature': `${header}.${payload}.`,
    HS256: `${shared}.${createHmac('sha256', secret).update(shared).digest('base64url')}`,
    'no end': await issuer.sign({}, { expires: null }),
    'no JSON': 'a.b.c',
    'four parts': `${good}.x`,
  })) {
    assert.equal(await status(service, token), 401, what);
  }
  // Clocks may differ by a minute.
  assert.equal(await status(service, await issuer.sign({}, { expires: '-20s' })), 200);
  assert.equal(await status(service, await issuer.sign({ aud: ['somebody', 'other'] })), 200);
});

test('scopes are in the claim that is named, a text or a list', async () => {
  await using issuer = await startIssuer();
  for (const [claim, claims] of [
    ['scp', { scp: ['users:read', 'x'] }],
    ['/realm_access/roles', { realm_access: { roles: ['users:read'] } }],
    ['https://example.com/scopes', { 'https://example.com/scopes': 'x users:read' }],
  ] as const) {
    await using service = await startWith(issuer.url, { API_JWT_SCOPES_CLAIM: claim });
    assert.equal(await status(service, await issuer.sign({ scope: '', ...claims })), 200, claim);
    assert.equal(await status(service, await issuer.sign()), 403, claim);
  }
});

test('without its keys the service says that it cannot tell, and what it knows still comes in', async () => {
  await using issuer = await startIssuer();
  issuer.up = false;
  await using service = await startWith(issuer.url);
  const token = await issuer.sign();
  assert.equal(await status(service, token), 503);
  issuer.up = true;
  assert.equal(await status(service, token), 200);
  issuer.up = false;
  assert.equal(await status(service, token), 200);
  assert.equal(await status(service, await issuer.sign({ sub: 'bob' })), 200, 'the keys are known');
});

test('keys in a file are followed, and those of a new issuer are asked for by their names', async () => {
  await using issuer = await startIssuer();
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'jwks.json');
  const write = async ({ keys }: Issuer) => {
    await writeFile(`${file}.new`, JSON.stringify(keys()));
    await rename(`${file}.new`, file);
  };
  await write(issuer);
  await using service = await startWith(file);
  assert.equal(await status(service, await issuer.sign()), 200);
  await issuer.rotate('EdDSA');
  const next = await issuer.sign();
  assert.equal(await status(service, next), 401);
  await write(issuer);
  await waitFor('the new keys', async () => (await status(service, next)) === 200);
});

for (const fastPath of ['true', 'false']) {
  test(`fast path ${fastPath}: forged tokens are failures of their address, whatever key they name`, async () => {
    await using issuer = await startIssuer();
    await using stranger = await startIssuer();
    await using service = await startWith(issuer.url, {
      API_MAX_FAILURES: '4',
      TRUST_PROXY: 'loopback',
      HTTP_FAST_PATH: fastPath,
    });
    using connection = await keepConnection(service.urls.rest ?? '');
    const ask = async (client: string, token: string) => {
      const headers = { authorization: `Bearer ${token}`, 'x-forwarded-for': client };
      return (await connection.ask('/users/9', { headers })).status;
    };
    const known = await issuer.sign();
    assert.equal(await ask('203.0.113.1', known), 200);
    const forge = async (i: number) => {
      // A key that nobody knows, no name of a key, the name of a key that there is, an algorithm that it is not for.
      const other = i % 4 === 3 ? await startIssuer('EdDSA') : undefined;
      const kid = ['unknown', '', 'key-1', 'key-1'][i % 4];
      const token = await (other ?? stranger).sign({ jti: String(i) }, { kid });
      await other?.[Symbol.asyncDispose]();
      return token;
    };
    for (let i = 0; i < 40; i++) {
      assert.equal(await ask('203.0.113.1', await forge(i)), i < 4 ? 401 : 429, `guess ${i}`);
    }
    assert.equal(await ask('203.0.113.1', known), 200, 'what is known comes in');
    // One kind alone, of which none was counted once.
    for (let i = 0; i < 8; i++) {
      const unknown = await stranger.sign({ jti: `u${i}` }, { kid: `unknown-${i}` });
      assert.equal(await ask('203.0.113.2', unknown), i < 4 ? 401 : 429, `unknown key ${i}`);
    }
    // What the issuer has signed is no guess.
    for (let i = 0; i < 8; i++) {
      const expired = await issuer.sign({ jti: `e${i}` }, { expires: '-2m' });
      assert.equal(await ask('203.0.113.3', expired), 401);
    }
    assert.equal(await ask('203.0.113.3', await issuer.sign({ sub: 'bob' })), 200);
  });
}
