import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readConfigured as read } from '../../test/support/signed-requests.ts';
import type { SourcesConfig } from './config.ts';

const SHARED = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;

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
      `${at}.a.scheme must be one of standard, github, stripe, slack, shopify, gitlab, paypal, twilio, linear, clerk, resend, discord, hmac, token`,
      `${at}.a.secrets must be a secret, { env: NAME } or { file: PATH }, or an array of at least one of these`,
    ],
    [
      { a: { scheme: 'gihub', secrets: 'a' } },
      `${at}.a.scheme must be one of standard, github, stripe, slack, shopify, gitlab, paypal, twilio, linear, clerk, resend, discord, hmac, token; did you mean github?`,
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
      { a: { scheme: 'github', secrets: 'a', maxBodyBytes: 0 } },
      `${at}.a.maxBodyBytes must be a whole number above 0`,
    ],
    [
      { a: { scheme: 'github', secrets: 'a', headers: 'x-event' } },
      `${at}.a.headers must be an array of header names`,
    ],
    [
      { a: { scheme: 'github', secrets: 'a', headers: ['x-event', 'x event', 'X-Hub-Signature', 'Cookie'] } },
      `${at}.a.headers[1] must be the name of a header`,
      `${at}.a.headers[2] must not be a header with a secret (authorization, cookie, signature, token)`,
      `${at}.a.headers[3] must not be a header with a secret (authorization, cookie, signature, token)`,
    ],
    [
      { a: { scheme: 'hmac', secrets: 'a', header: 'x-proof', headers: ['X-Proof'] } },
      `${at}.a.headers must not have x-proof, the header with the secret`,
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

test('no problem shows the value in place of a secret', () => {
  const planted = 'Zq7PlantedSecret';
  const hidden = fc.constantFrom(planted, `${planted}\n`, ` ${planted}`, `whsec_${planted}`);
  const misplaced = fc.oneof(
    hidden,
    hidden.map((env) => ({ env })),
    hidden.map((secret) => ({ secret })),
    hidden.map((env) => ({ env, file: env })),
    hidden.map((secret) => ({ env: [secret] })),
    hidden.map((secret) => [[secret]]),
  );
  const secrets = fc.oneof(misplaced, fc.array(misplaced, { minLength: 1, maxLength: 3 }));
  const scheme = fc.constantFrom('standard', 'github', 'stripe', 'slack', 'hmac', 'token', 'x', 1);
  let refused = 0;
  const property = fc.property(scheme, secrets, (name, value) => {
    const { problems } = read({ a: { scheme: name, secrets: value } });
    refused += problems.length;
    assert.ok(!problems.join().includes(planted), problems.join());
  });
  fc.assert(property, { numRuns: 500 });
  assert.ok(refused > 500, `only ${refused} were refused`);
});

/** Not one of these compiles. */
const mistakes: readonly SourcesConfig[] = [
  // @ts-expect-error: no such scheme
  { a: { scheme: 'gihub', secrets: 'a' } },
  // @ts-expect-error: a source has secrets
  { a: { scheme: 'github' } },
  // @ts-expect-error: a field of another scheme
  { a: { scheme: 'github', secrets: 'a', tolerance: 1 } },
  // @ts-expect-error: the header of an HMAC
  { a: { scheme: 'hmac', secrets: 'a' } },
  // @ts-expect-error: a place is a header or a pointer
  { a: { scheme: 'token', secrets: 'a', event: '/type' } },
];

test('the start refuses what the compiler refuses', () => {
  for (const mistake of mistakes) assert.equal(read(mistake).problems.length, 1, JSON.stringify(mistake));
});

test('all problems are reported at once', () => {
  const { problems } = read({
    a: { scheme: 'x', secrets: [] },
    b: { scheme: 'github', secrets: 'a', data: 1 },
  });
  assert.equal(problems.length, 3);
  const at = 'webhook.sources.a';
  const everything = {
    scheme: 'hmac',
    secrets: ['', { env: 'UNSET' }],
    data: 1,
    tolerance: 10,
    template: '{timestamp}{body}',
    heder: 'x',
  };
  assert.deepEqual(read({ a: everything }).problems, [
    `${at} has an unknown key "heder"; did you mean header?`,
    `${at}.data must be a JSON pointer like /data/object, or "" for the whole body`,
    `${at}.header must be the name of a header: the one with the signature`,
    `${at}.tolerance needs timestampHeader, the header with the time of a request`,
    `${at}.template has {timestamp}, which needs timestampHeader`,
    `${at}.secrets[0] must be a text without control characters or spaces at its ends, and not empty`,
    `${at}.secrets[1] names the environment variable UNSET, which is not set`,
  ]);
});
