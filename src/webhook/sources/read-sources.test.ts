import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readConfigured as read } from '../../../test/support/configured-sources.ts';
import { verify } from '../../../test/support/verify-request.ts';
import type { SourcesConfig } from '../../config/schema/webhook-sources.ts';
import { createSigner } from '../schemes/schemes.ts';
import { createSource } from './source.ts';

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
  assert.deepEqual(sources.get('svix'), {
    name: 'svix',
    chosen: { scheme: 'standard', params: { headerPrefix: 'webhook', tolerance: 300 } },
    secrets: [SHARED],
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
  assert.ok(source.chosen.scheme === 'hmac');
  const { template, ...params } = source.chosen.params;
  assert.deepEqual(params, {
    header: 'x-shop-signature',
    algorithm: 'sha512',
    encoding: 'base64',
    prefix: 'v1=',
    timestampHeader: 'x-shop-time',
    tolerance: 0,
  });
  assert.deepEqual(template('17', {}), { before: '17:', after: '' });
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
  const settings = sourceOf({
    shop: { scheme: 'hmac', secrets: ['new', 'old'], header: 'x-a', timestampHeader: 'x-t' },
  });
  const source = createSource(settings);
  const body = Buffer.from('{}');
  const headers = createSigner(
    settings.chosen,
    settings.secrets,
  )({ id: '1', timestamp: 1_700_000_000, body });
  assert.deepEqual(verify(source.verifier, headers, body, 1_700_000_000_000), { ok: true });
  assert.deepEqual(verify(source.verifier, headers, Buffer.from('[]'), 1_700_000_000_000), {
    ok: false,
    reason: 'wrong-signature',
  });
  assert.ok(!JSON.stringify(source).includes('new'));
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
      if (problems.length === 0) for (const source of sources.values()) createSource(source);
    }),
    { numRuns: 2000 },
  );
});
