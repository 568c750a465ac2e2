import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { SecretResolver } from '../../config/secret-resolver.ts';
import type { SourcesConfig } from '../../config/webhook-sources.ts';
import { verify } from '../schemes/scheme.ts';
import { readSources } from './read-sources.ts';
import { createSource, signerOf } from './source.ts';

const SHARED = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;

const resolve: SecretResolver = {
  env: (name) => ({ HOOK_SECRET: 'from the variable', EMPTY: '' })[name],
  file: (at, path) => (path === '/run/hook' ? { text: 'from the file' } : { problem: `${at}: no ${path}` }),
};

function read(value: unknown) {
  const problems: string[] = [];
  // Through JSON: everything that is configured can stand in a file of data.
  const data = value === undefined ? undefined : JSON.parse(JSON.stringify(value));
  return { sources: readSources(data, 'webhook.sources', resolve, problems), problems };
}

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
});

test('dedup: false takes the key away', () => {
  assert.equal(sourceOf({ g: { scheme: 'github', secrets: 'a', dedup: false } }).dedup, undefined);
});

test('another prefix of the headers goes for the id too', () => {
  const source = sourceOf({ c: { scheme: 'standard', secrets: SHARED, headerPrefix: 'Svix' } });
  assert.deepEqual(source.dedup, { kind: 'header', name: 'svix-id' });
});

test('a source verifies what its own signer signs', () => {
  const settings = sourceOf({
    shop: { scheme: 'hmac', secrets: ['new', 'old'], header: 'x-a', timestampHeader: 'x-t' },
  });
  const source = createSource(settings);
  const body = Buffer.from('{}');
  const headers = signerOf(settings)({ id: '1', timestamp: 1_700_000_000, body });
  assert.deepEqual(verify(source.verifier, headers, body, 1_700_000_000_000), { ok: true });
  assert.deepEqual(verify(source.verifier, headers, Buffer.from('[]'), 1_700_000_000_000), {
    ok: false,
    reason: 'wrong-signature',
  });
  assert.ok(!JSON.stringify(source).includes('new'));
});

test('every fault is named by its path', () => {
  const at = 'webhook.sources';
  for (const [value, ...expected] of [
    ['x', `${at} must be an object of sources by name`],
    [[], `${at} must be an object of sources by name`],
    [{ a: 1 }, `${at}.a must be an object with scheme and secrets`],
    [
      { 'Git Hub': { scheme: 'github', secrets: 'a' } },
      `${at}["Git Hub"] must have a name of lower-case letters, digits and "-" that begins with a letter`,
    ],
    [
      { a: {} },
      `${at}.a.scheme must be one of standard, github, stripe, slack, hmac, token`,
      `${at}.a.secrets must be a secret, { env: NAME } or { file: PATH }, or an array of at least one of these`,
    ],
    [
      { a: { scheme: 'gihub', secrets: 'a' } },
      `${at}.a.scheme must be one of standard, github, stripe, slack, hmac, token; did you mean github?`,
    ],
    [
      { a: { scheme: 'github', secrets: 'a', secret: 'b' } },
      `${at}.a has an unknown key "secret"; did you mean secrets?`,
    ],
    [{ a: { scheme: 'github', secrets: 'a', tolerance: 1 } }, `${at}.a has an unknown key "tolerance"`],
    [
      { a: { scheme: 'stripe', secrets: 'a', tolerance: '300' } },
      `${at}.a.tolerance must be a whole number of seconds, 0 for any time`,
    ],
    [
      { a: { scheme: 'slack', secrets: 'a', tolerance: -1 } },
      `${at}.a.tolerance must be a whole number of seconds, 0 for any time`,
    ],
    [
      { a: { scheme: 'github', secrets: 'a', event: '/type' } },
      `${at}.a.event must be { header: NAME } or { pointer: a JSON pointer like /type }`,
    ],
    [
      { a: { scheme: 'github', secrets: 'a', event: { header: 'a', pointer: '/a' } } },
      `${at}.a.event must be { header: NAME } or { pointer: a JSON pointer like /type }`,
    ],
    [
      { a: { scheme: 'github', secrets: 'a', event: { header: 'a b' } } },
      `${at}.a.event must be { header: NAME } or { pointer: a JSON pointer like /type }`,
    ],
    [
      { a: { scheme: 'github', secrets: 'a', dedup: { pointer: 'id' } } },
      `${at}.a.dedup must be { header: NAME } or { pointer: a JSON pointer like /type }, or false`,
    ],
    [
      { a: { scheme: 'github', secrets: 'a', dedup: true } },
      `${at}.a.dedup must be { header: NAME } or { pointer: a JSON pointer like /type }, or false`,
    ],
    [
      { a: { scheme: 'github', secrets: 'a', data: 'data' } },
      `${at}.a.data must be a JSON pointer like /data/object, or "" for the whole body`,
    ],
    [
      { a: { scheme: 'github', secrets: 'a', events: ['push'] } },
      `${at}.a.events must be an object of event names, like { push: "new_commit" }`,
    ],
    [
      { a: { scheme: 'github', secrets: 'a', events: { push: '', 'a\n': 1 } } },
      `${at}.a.events["push"] must be the name of an event, and not empty`,
      `${at}.a.events["a\\n"] must be the name of an event, and not empty`,
    ],
    [
      { a: { scheme: 'standard', secrets: SHARED, headerPrefix: '' } },
      `${at}.a.headerPrefix must be the first word of header names`,
    ],
    [{ a: { scheme: 'token', secrets: 'a', header: 'a:' } }, `${at}.a.header must be the name of a header`],
    [
      { a: { scheme: 'hmac', secrets: 'a' } },
      `${at}.a.header must be the name of a header: the one with the signature`,
    ],
    [
      { a: { scheme: 'hmac', secrets: 'a', header: 'x', algorithm: 'md5', encoding: 'HEX', prefix: 'é' } },
      `${at}.a.algorithm must be one of sha256, sha512, sha1`,
      `${at}.a.encoding must be one of hex, base64`,
      `${at}.a.prefix must be a text of visible ASCII characters and spaces`,
    ],
    [
      { a: { scheme: 'hmac', secrets: 'a', header: 'x', template: '{id}{body}' } },
      `${at}.a.template must be ASCII text with {body} once, and {timestamp} and {header:NAME} as needed`,
    ],
    [
      { a: { scheme: 'hmac', secrets: 'a', header: 'x', template: '{timestamp}{body}' } },
      `${at}.a.template has {timestamp}, which needs timestampHeader`,
    ],
    [
      { a: { scheme: 'hmac', secrets: 'a', header: 'x', timestampHeader: 't', template: '{body}' } },
      `${at}.a.template must have {timestamp}: a time that is not signed proves nothing`,
    ],
    [
      { a: { scheme: 'hmac', secrets: 'a', header: 'x', tolerance: 10 } },
      `${at}.a.tolerance needs timestampHeader, the header with the time of a request`,
    ],
  ] as const) {
    assert.deepEqual(read(value).problems, expected, JSON.stringify(value));
  }
});

test('faults of secrets are named without a secret', () => {
  const at = 'webhook.sources.a.secrets';
  const one = 'must be a secret, { env: NAME } or { file: PATH }';
  for (const [secrets, ...expected] of [
    [[], `${at} ${one}, or an array of at least one of these`],
    [7, `${at} ${one}`],
    [{}, `${at} ${one}`],
    [{ env: '' }, `${at} ${one}`],
    [{ env: 'HOOK_SECRET', file: '/run/hook' }, `${at} ${one}`],
    [{ key: 'hidden' }, `${at} ${one}`],
    [['fine', null, ['hidden']], `${at}[1] ${one}`, `${at}[2] ${one}`],
    ['hidden\n', `${at} must be a text without control characters or spaces at its ends, and not empty`],
    [{ env: 'HOOK' }, `${at} names the environment variable HOOK, which is not set`],
    [{ env: 'hidden' }, `${at} names the environment variable, which is not set`],
    [
      [{ env: 'EMPTY' }],
      `${at}[0] names the environment variable EMPTY, which must be a text without control characters or spaces at its ends, and not empty`,
    ],
    [[{ file: '/run/other' }], `${at}[0]: no /run/other`],
  ] as const) {
    const { problems } = read({ a: { scheme: 'github', secrets } });
    assert.deepEqual(problems, expected);
    assert.ok(!problems.join().includes('hidden'));
  }
  assert.deepEqual(read({ a: { scheme: 'standard', secrets: [SHARED, { env: 'HOOK_SECRET' }] } }).problems, [
    `${at}[1] names the environment variable HOOK_SECRET, which must begin with whsec_, whpk_ or whsk_`,
  ]);
  assert.deepEqual(read({ a: { scheme: 'standard', secrets: { file: '/run/hook' } } }).problems, [
    `${at} names the file "/run/hook", whose text must begin with whsec_, whpk_ or whsk_`,
  ]);
});

test('all faults are told at once', () => {
  const { problems } = read({
    a: { scheme: 'x', secrets: [] },
    b: { scheme: 'github', secrets: 'a', data: 1 },
  });
  assert.equal(problems.length, 3);
});

test('any data gives sources that work, or problems', () => {
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
