import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { readConfigured as read } from '../../../test/support/configured-sources.ts';
import { verify } from '../../../test/support/verify-request.ts';
import type { SourcesConfig } from '../../config/schema/webhook-sources.ts';

const SHARED = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;

function sourceOf(config: SourcesConfig) {
  const { sources, problems } = read(config);
  assert.deepEqual(problems, []);
  const [source] = sources.values();
  return source ?? assert.fail();
}

test('a source needs no more than a scheme and a secret', () => {
  const { sources, problems } = read({
    svix: { scheme: 'standard', secrets: SHARED },
    github: { scheme: 'github', secrets: 'a' },
    stripe: { scheme: 'stripe', secrets: ['a', 'b'] },
    'slack-2': { scheme: 'slack', secrets: { env: 'HOOK_SECRET' } },
    shop: { scheme: 'hmac', secrets: [{ file: '/run/hook' }, 'c'], header: 'X-Shop-Hmac' },
    gitlab: { scheme: 'token', secrets: 'a' },
  });
  assert.deepEqual(problems, []);
  assert.deepEqual([...sources.keys()], ['svix', 'github', 'stripe', 'slack-2', 'shop', 'gitlab']);
  assert.deepEqual(
    [...sources.values()].map(({ secrets }) => secrets),
    [[SHARED], ['a'], ['a', 'b'], ['from the variable'], ['from the file', 'c'], ['a']],
  );
  const { signature, headers: _headers, ...svix } = sources.get('svix') ?? assert.fail();
  const signed = signature.signer([SHARED])({ id: '1', timestamp: 1_700_000_000, body: Buffer.from('{}') });
  assert.deepEqual(Object.keys(signed), ['webhook-id', 'webhook-timestamp', 'webhook-signature']);
  const verdictAt = (now: number) =>
    verify(signature.verifier([SHARED]), signed, Buffer.from('{}'), now * 1_000);
  assert.deepEqual(verdictAt(1_700_000_300), { ok: true });
  assert.deepEqual(verdictAt(1_700_000_301), { ok: false, reason: 'too-old' });
  assert.deepEqual(svix, {
    name: 'svix',
    scheme: 'standard',
    secrets: [SHARED],
    maxBodyBytes: undefined,
    event: { kind: 'pointer', pointer: ['type'] },
    events: new Map(),
    data: ['data'],
    dedup: { kind: 'header', name: 'webhook-id' },
  });
});

test('without sources there are none', () => {
  assert.equal(read(undefined).sources.size, 0);
  assert.deepEqual(read({}), { sources: new Map(), problems: [] });
});

test('everything can be said otherwise', () => {
  const source = sourceOf({
    shop: {
      scheme: 'hmac',
      secrets: 'a',
      header: 'X-Shop-Signature',
      algorithm: 'sha512',
      encoding: 'base64',
      prefix: 'v1=',
      timestampHeader: 'X-Shop-Time',
      tolerance: 0,
      template: '{timestamp}:{body}',
      event: { header: 'X-Shop-Topic' },
      events: { 'orders/paid': 'payment_received' },
      data: '',
      dedup: { pointer: '/a~1b' },
    },
  });
  const body = Buffer.from('{}');
  const signed = source.signature.signer(['a'])({ id: '1', timestamp: 17, body });
  const signature = createHmac('sha512', 'a').update('17:{}').digest('base64');
  assert.deepEqual(signed, { 'x-shop-time': '17', 'x-shop-signature': `v1=${signature}` });
  // The tolerance is 0: any time.
  assert.deepEqual(verify(source.signature.verifier(['a']), signed, body, Date.now()), { ok: true });
  assert.deepEqual(source.event, { kind: 'header', name: 'x-shop-topic' });
  assert.deepEqual(source.events, new Map([['orders/paid', 'payment_received']]));
  assert.deepEqual(source.data, []);
  assert.deepEqual(source.dedup, { kind: 'pointer', pointer: ['a/b'] });
});

test('names of events are added to those that the scheme has, and can take their place', () => {
  const { events } = sourceOf({ g: { scheme: 'github', secrets: 'a', events: { ping: 'hello' } } });
  assert.deepEqual(Object.fromEntries(events), { push: 'new_commit', ping: 'hello' });
  const kept = sourceOf({ g: { scheme: 'github', secrets: 'a', events: { push: 'push' } } });
  assert.deepEqual(Object.fromEntries(kept.events), { push: 'push' });
  const odd = sourceOf({ t: { scheme: 'token', secrets: 'a', events: { constructor: 'built' } } });
  assert.deepEqual([...odd.events], [['constructor', 'built']]);
});

test('dedup: false takes the key away', () => {
  assert.equal(sourceOf({ g: { scheme: 'github', secrets: 'a', dedup: false } }).dedup, undefined);
});

test('another prefix of the headers goes for the id too', () => {
  const source = sourceOf({ c: { scheme: 'standard', secrets: SHARED, headerPrefix: 'Svix' } });
  assert.deepEqual(source.dedup, { kind: 'header', name: 'svix-id' });
});

test('a source verifies the signatures of its own signer', () => {
  const { signature, secrets } = sourceOf({
    shop: { scheme: 'hmac', secrets: ['new', 'old'], header: 'x-a', timestampHeader: 'x-t' },
  });
  const body = Buffer.from('{}');
  const headers = signature.signer(secrets)({ id: '1', timestamp: 1_700_000_000, body });
  const verifier = signature.verifier(secrets);
  assert.deepEqual(verify(verifier, headers, body, 1_700_000_000_000), { ok: true });
  assert.deepEqual(verify(verifier, headers, Buffer.from('[]'), 1_700_000_000_000), {
    ok: false,
    reason: 'wrong-signature',
  });
});

test('property: any data makes working sources, or problems', () => {
  const scheme = fc.constantFrom('standard', 'github', 'stripe', 'slack', 'hmac', 'token', 'x');
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 1 }),
    fc.constantFrom('a', 'x-a', '/a', '{body}', '{timestamp}{body}', 300, false, { header: 'x' }, SHARED),
  );
  const entry = fc.record(
    {
      scheme,
      secrets: fc.oneof(value, fc.array(value, { maxLength: 3 })),
      event: value,
      events: value,
      data: value,
      dedup: value,
      tolerance: value,
      header: value,
      headerPrefix: value,
      algorithm: value,
      encoding: value,
      prefix: value,
      timestampHeader: value,
      template: value,
    },
    { requiredKeys: ['scheme', 'secrets'] },
  );
  fc.assert(
    fc.property(fc.oneof(fc.jsonValue(), fc.dictionary(fc.constantFrom('a', 'b-1'), entry)), (config) => {
      const { sources, problems } = read(config);
      if (problems.length === 0)
        for (const { signature, secrets } of sources.values()) signature.verifier(secrets);
    }),
    { numRuns: 2000 },
  );
});
