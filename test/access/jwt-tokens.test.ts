import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KnownCaller } from '@portico/transport';
import fc from 'fast-check';
import { createRemoteJWKSet } from 'jose';
import { JwtTokens, scopesReader } from '../../src/access/jwt.ts';
import { AUDIENCE, ISSUER, startIssuer } from './support/tokens.ts';

const RULES = {
  issuer: ISSUER,
  audience: [AUDIENCE],
  scopesClaim: 'scope',
  clockSkew: 0,
  log: { warn() {} },
};

const isCaller = (found: unknown) => found instanceof KnownCaller;

test('a rotated key is fetched once the pause since the last fetch is over, and the old one ends', async (t) => {
  await using issuer = await startIssuer();
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() });
  const keys = createRemoteJWKSet(new URL(issuer.url), { cooldownDuration: 30_000 });
  const tokens = new JwtTokens({ ...RULES, keys });
  const old = await issuer.sign({}, { expires: '1h' });
  assert.ok(isCaller(await tokens.check(old, 'old')));
  await issuer.rotate();
  const next = await issuer.sign({}, { expires: '1h' });
  assert.equal(await tokens.check(next, 'next'), undefined, 'a guess, and no fetch for each');
  assert.equal(issuer.asked, 1);
  t.mock.timers.tick(30_001);
  assert.ok(isCaller(await tokens.check(next, 'next')));
  assert.equal(issuer.asked, 2);
  // What was verified is known for five minutes.
  assert.ok(tokens.find('old', Date.now()));
  t.mock.timers.tick(300_000);
  assert.equal(tokens.find('old', Date.now()), undefined);
  assert.equal(await tokens.check(old, 'old'), undefined);
});

test('a token is known until it expires, and all of them stay within their bytes', async () => {
  await using issuer = await startIssuer();
  const tokens = new JwtTokens({
    ...RULES,
    keys: createRemoteJWKSet(new URL(issuer.url)),
    maxCacheBytes: 20_000,
  });
  const short = await issuer.sign({}, { expires: '20s' });
  await tokens.check(short, 'short');
  assert.ok(tokens.find('short', Date.now()));
  assert.equal(tokens.find('short', Date.now() + 21_000), undefined);
  assert.equal(await tokens.check(await issuer.sign({}, { expires: null }), 'endless'), 'stale');
  for (let i = 0; i < 60; i++) {
    await tokens.check(await issuer.sign({ sub: `user ${i}` }), `${i}`);
    assert.ok(tokens.bytes <= 20_000);
  }
  assert.ok(tokens.find('59', Date.now()));
  assert.equal(tokens.find('0', Date.now()), undefined);
});

test('the reader of scopes takes whatever is in a claim', () => {
  const scope = fc.stringMatching(/^[\w:./-]{1,10}$/);
  fc.assert(
    fc.property(fc.array(scope), fc.boolean(), (scopes, asText) => {
      const claims = { scope: asText ? scopes.join('  ') : scopes };
      assert.deepEqual([...scopesReader('scope')(claims)], [...new Set(scopes)]);
      assert.deepEqual([...scopesReader('/a/scope')({ a: claims })], [...new Set(scopes)]);
    }),
  );
  fc.assert(
    fc.property(
      fc.object(),
      fc.string({ minLength: 1 }),
      (claims, claim) => void scopesReader(claim)(claims),
    ),
  );
});
