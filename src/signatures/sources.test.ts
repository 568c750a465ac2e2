import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { readConfigured as read, readConfigured, verify } from '../../test/support/signed-requests.ts';
import { valueAt } from '../core/json.ts';
import type { SourceConfig, SourcesConfig } from './config.ts';
import { UnsignableError } from './hmac.ts';
import { buildBody, signDelivery } from './outgoing.ts';
import { defaultLayout, readDelivery, readSources, type SourceLayout } from './sources.ts';

describe('read sources', () => {
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
});

describe('kept headers', () => {
  /** The headers that a source keeps. */
  function headersOf(source: Readonly<Record<string, unknown>>): readonly string[] {
    const { sources, problems } = readConfigured({ a: { secrets: 'a', ...source } });
    assert.deepEqual(problems, []);
    return sources.get('a')?.headers ?? assert.fail();
  }

  const secrets = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;
  const SENDERS: readonly (readonly [string, Readonly<Record<string, unknown>>, readonly string[]])[] = [
    ['GitHub', { scheme: 'github' }, ['x-github-event', 'x-github-delivery', 'x-github-hook-id']],
    ['Standard Webhooks', { scheme: 'standard', secrets }, ['webhook-id', 'webhook-timestamp']],
    ['Svix', { scheme: 'standard', secrets, headerPrefix: 'svix' }, ['svix-id', 'svix-timestamp']],
    ['a prefix', { scheme: 'standard', secrets, headerPrefix: 'acme' }, ['acme-id', 'acme-timestamp']],
    [
      'Shopify',
      { scheme: 'hmac', header: 'x-shopify-hmac-sha256' },
      ['x-shopify-topic', 'x-shopify-webhook-id', 'x-shopify-triggered-at'],
    ],
    [
      'GitLab',
      { scheme: 'token', header: 'x-gitlab-token' },
      ['x-gitlab-event', 'x-gitlab-event-uuid', 'idempotency-key'],
    ],
    ['Slack', { scheme: 'slack' }, ['x-slack-request-timestamp', 'x-slack-retry-num']],
    [
      'what it reads itself',
      {
        scheme: 'hmac',
        header: 'x-mine',
        timestampHeader: 'x-time',
        event: { header: 'x-kind' },
        dedup: { header: 'x-number' },
      },
      ['x-kind', 'x-number', 'x-time'],
    ],
  ];

  for (const [name, source, expected] of SENDERS) {
    test(`the event names, ids and times are kept: ${name}`, () => {
      const headers = headersOf(source);
      assert.deepEqual(
        expected.filter((header) => !headers.includes(header)),
        [],
      );
    });
  }

  test('a list of its own takes their place, an empty one too', () => {
    assert.deepEqual(headersOf({ scheme: 'github', headers: ['X-GitHub-Event', 'x-b', 'x-b'] }), [
      'x-github-event',
      'x-b',
    ]);
    assert.deepEqual(headersOf({ scheme: 'github', headers: [] }), []);
  });

  test('what holds the secret is never among them, whatever it is called', () => {
    const event = { header: 'x-event-token' };
    const kept = headersOf({
      scheme: 'token',
      header: 'x-github-event',
      event,
      dedup: { header: 'x-github-event' },
    });
    assert.ok(!kept.includes('x-github-event'));
    assert.ok(!kept.includes('x-event-token'));
  });
});

describe('build body', () => {
  const layouts = {
    token: defaultLayout('token'),
    standard: defaultLayout('standard'),
    github: defaultLayout('github'),
    stripe: defaultLayout('stripe'),
    slack: defaultLayout('slack'),
  };
  const build = (layout: SourceLayout, data: unknown) =>
    JSON.parse(Buffer.from(buildBody(layout, { event: 'paid', data, id: 'evt_1' })).toString());

  test('the body of each scheme', () => {
    const data = { amount: 7 };
    assert.deepEqual(build(layouts.token, data), { event: 'paid', data });
    assert.deepEqual(build(layouts.standard, data), { type: 'paid', data });
    assert.deepEqual(build(layouts.github, data), data);
    assert.deepEqual(build(layouts.stripe, data), { id: 'evt_1', type: 'paid', data });
    assert.deepEqual(build(layouts.slack, data), { event_id: 'evt_1', event: { amount: 7, type: 'paid' } });
  });

  test('what the receiver reads is what was sent', () => {
    for (const [scheme, layout] of Object.entries(layouts)) {
      const body = build(layout, { amount: 7 });
      const headers = {
        'x-github-event': 'paid',
        'x-github-delivery': 'evt_1',
        'webhook-id': 'evt_1',
        'idempotency-key': 'evt_1',
      };
      const read = readDelivery({ ...layout, scheme: 'token' }, headers, body);
      assert.ok(read.kind === 'delivery');
      assert.deepEqual([read.event, read.dedupKey], ['paid', 'evt_1'], scheme);
      assert.deepEqual(
        valueAt(body, read.pointer),
        scheme === 'slack' ? { amount: 7, type: 'paid' } : { amount: 7 },
        scheme,
      );
    }
  });

  test('data of any kind, unless the sender puts more into them', () => {
    assert.deepEqual(build(layouts.token, [1]), { event: 'paid', data: [1] });
    assert.equal(build(layouts.github, 'text'), 'text');
    assert.throws(() => build(layouts.slack, 'text'), UnsignableError);
    assert.throws(() => build(layouts.slack, [1]), UnsignableError);
  });
});

describe('sign delivery', () => {
  const NOW = 1_700_000_000;
  const SHARED = `whsec_${Buffer.alloc(32, 9).toString('base64')}`;

  const configs: readonly { config: SourceConfig; body: unknown; id?: string }[] = [
    { config: { scheme: 'standard', secrets: SHARED }, body: { type: 'paid', data: 1 }, id: 'id-1' },
    {
      config: { scheme: 'standard', secrets: SHARED, headerPrefix: 'svix' },
      body: { type: 'paid', data: 1 },
      id: 'id-1',
    },
    { config: { scheme: 'github', secrets: 'a' }, body: 1, id: 'id-1' },
    { config: { scheme: 'stripe', secrets: 'a' }, body: { type: 'paid', data: 1 } },
    { config: { scheme: 'slack', secrets: 'a' }, body: { event: { type: 'paid' } } },
    {
      config: {
        scheme: 'hmac',
        secrets: 'a',
        header: 'x-a',
        timestampHeader: 'x-t',
        template: '{header:idempotency-key}.{header:x-topic}.{timestamp}.{body}',
        event: { header: 'X-Topic' },
        data: '',
      },
      body: 1,
      id: 'id-1',
    },
    { config: { scheme: 'token', secrets: 'a' }, body: { event: 'paid', data: 1 }, id: 'id-1' },
  ];

  for (const { config, body, id } of configs) {
    test(`${config.scheme}: what is signed like the sender is verified and read like the sender’s`, () => {
      const problems: string[] = [];
      const [source = assert.fail(problems.join())] = readSources(
        { a: config },
        'sources',
        { env: () => undefined, file: assert.fail },
        problems,
      );
      const bytes = Buffer.from(JSON.stringify(body));
      const headers = signDelivery(source, source.signature.signer(source.secrets), {
        event: 'paid',
        id: 'id-1',
        timestamp: NOW,
        body: bytes,
      });
      assert.deepEqual(verify(source.signature.verifier(source.secrets), headers, bytes, NOW * 1000), {
        ok: true,
      });
      const read = readDelivery(source, headers, body);
      assert.ok(read.kind === 'delivery');
      assert.equal(read.event, 'paid');
      assert.equal(read.dedupKey, id ?? null);
      assert.equal(headers['content-type'], 'application/json');
    });
  }
});
