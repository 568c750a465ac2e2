import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { anyCharacter } from '../../test/support/random.ts';
import { verify } from '../../test/support/signed-requests.ts';
import { type SchemeName, schemeNames } from './config.ts';
import { github, hmac, readTemplate, slack, stripe, timestampAndBody, token } from './hmac.ts';
import type { AnyScheme } from './schemes.ts';
import { senderScheme } from './senders.ts';
import { secretProblem } from './sources.ts';
import { standard } from './standard.ts';

const tolerance = 300;
const params = {
  header: 'x-signature',
  algorithm: 'sha256',
  encoding: 'hex',
  prefix: '',
  timestampHeader: 'x-time',
  tolerance,
  template: timestampAndBody.fill,
} as const;
const idAndBody = readTemplate('{header:x-id}\n{body}{timestamp}')?.fill ?? assert.fail();
const shared = `whsec_${Buffer.alloc(32, 3).toString('base64')}`;
const seed = `whsk_${Buffer.alloc(32, 5).toString('base64')}`;

const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 });

const cases: readonly {
  title: string;
  name: SchemeName;
  scheme: AnyScheme;
  secret: string;
  more?: readonly string[];
}[] = [
  {
    title: 'standard v1',
    name: 'standard',
    scheme: standard({ headerPrefix: 'webhook', tolerance }),
    secret: shared,
  },
  {
    title: 'standard v1a',
    name: 'standard',
    scheme: standard({ headerPrefix: 'svix', tolerance }),
    secret: seed,
  },
  { title: 'github', name: 'github', scheme: github, secret: 'größer' },
  { title: 'stripe', name: 'stripe', scheme: stripe(tolerance), secret: 'whsec_x' },
  { title: 'slack', name: 'slack', scheme: slack(tolerance), secret: 'abc' },
  { title: 'hmac', name: 'hmac', scheme: hmac(params), secret: 'abc' },
  {
    title: 'hmac in base64 with a header',
    name: 'hmac',
    scheme: hmac({ ...params, algorithm: 'sha512', encoding: 'base64', template: idAndBody }),
    secret: 'abc',
  },
  { title: 'shopify', name: 'shopify', scheme: senderScheme('shopify', { tolerance }), secret: 'größer' },
  { title: 'gitlab token', name: 'gitlab', scheme: senderScheme('gitlab', { tolerance }), secret: 'abc' },
  { title: 'gitlab', name: 'gitlab', scheme: senderScheme('gitlab', { tolerance }), secret: shared },
  { title: 'clerk', name: 'clerk', scheme: senderScheme('clerk', { tolerance }), secret: shared },
  { title: 'resend', name: 'resend', scheme: senderScheme('resend', { tolerance }), secret: shared },
  { title: 'discord', name: 'discord', scheme: senderScheme('discord', { tolerance }), secret: seed },
  {
    title: 'paypal',
    name: 'paypal',
    scheme: senderScheme('paypal', { tolerance }),
    secret: rsa.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    more: ['8PT597110X687430LKGECATA'],
  },
  { title: 'token', name: 'token', scheme: token('x-token'), secret: 'abc' },
];

const TIMESTAMP = 1_700_000_000;
const NOW = TIMESTAMP * 1000;
const request = fc.record({
  id: fc.string({ unit: fc.constantFrom(...'abcXYZ019_-'), minLength: 1, maxLength: 40 }),
  timestamp: fc.integer({ min: TIMESTAMP - tolerance, max: TIMESTAMP + tolerance }),
  body: fc.uint8Array({ maxLength: 200 }),
});

/** One bit of a byte or of a character is turned. */
function flipAt(length: number, choice: number): { readonly index: number; readonly bit: number } {
  return { index: Math.floor(choice / 8) % length, bit: 1 << (choice % 8) };
}

test('every scheme has a case', () => {
  // These two read the body, so that random bytes are no requests of theirs: senders.test.ts has their cases.
  const inSenders: readonly SchemeName[] = ['linear', 'twilio'];
  assert.deepEqual(new Set([...cases.map(({ name }) => name), ...inSenders]), new Set(schemeNames));
  for (const { name, secret } of cases) assert.equal(secretProblem(name, secret), undefined);
});

for (const { title, name: kind, scheme, secret, more = [] } of cases) {
  describe(title, () => {
    const verifier = scheme.verifier([secret, ...more]);
    const sign = scheme.signer([secret, ...more]);
    /** All headers that are sent; each of them counts. */
    const send = (outgoing: { id: string; timestamp: number; body: Uint8Array }): Record<string, string> => {
      const others = title.endsWith('header') ? { 'x-id': outgoing.id } : {};
      return { ...others, ...sign({ ...outgoing, headers: others }) };
    };

    test('what was signed verifies, whatever the bytes', () => {
      fc.assert(
        fc.property(request, (outgoing) => {
          assert.deepEqual(verify(verifier, send(outgoing), outgoing.body, NOW), { ok: true });
        }),
      );
    });

    if (!title.endsWith('token'))
      test('a single bit of the body', () => {
        fc.assert(
          fc.property(request, fc.nat(), ({ body, ...rest }, choice) => {
            fc.pre(body.length > 0);
            const { index, bit } = flipAt(body.length, choice);
            const changed = body.map((byte, at) => (at === index ? byte ^ bit : byte));
            const verdict = verify(verifier, send({ ...rest, body }), changed, NOW);
            assert.deepEqual(verdict, { ok: false, reason: 'wrong-signature' });
          }),
        );
      });

    if (!title.endsWith('token'))
      test('a body that is longer or shorter', () => {
        fc.assert(
          fc.property(request, fc.uint8Array({ minLength: 1 }), (outgoing, more) => {
            const headers = send(outgoing);
            const longer = Buffer.concat([outgoing.body, more]);
            assert.equal(verify(verifier, headers, longer, NOW).ok, false);
            const signed = send({ ...outgoing, body: longer });
            assert.equal(verify(verifier, signed, outgoing.body, NOW).ok, false);
          }),
        );
      });

    test('a single bit of any header: the signature, the id or the timestamp', () => {
      fc.assert(
        fc.property(request, fc.nat(), fc.nat(), (outgoing, which, choice) => {
          const headers = send(outgoing);
          const names = Object.keys(headers);
          const name = names[which % names.length] ?? assert.fail();
          const value = headers[name] ?? assert.fail();
          const { index, bit } = flipAt(value.length, choice);
          const changed = [...value].map((character, at) =>
            at === index ? String.fromCharCode(character.charCodeAt(0) ^ bit) : character,
          );
          const sent = changed.join('');
          // Only here the case of digits means nothing.
          fc.pre(kind !== 'hmac' || sent.toLowerCase() !== value.toLowerCase());
          assert.equal(verify(verifier, { ...headers, [name]: sent }, outgoing.body, NOW).ok, false);
        }),
        { numRuns: 300 },
      );
    });

    test('a header of the signer that is left out', () => {
      fc.assert(
        fc.property(request, fc.nat(), (outgoing, which) => {
          const headers = send(outgoing);
          const names = Object.keys(headers);
          const name = names[which % names.length] ?? assert.fail();
          const rest = Object.fromEntries(Object.entries(headers).filter(([key]) => key !== name));
          const step = verifier(rest, NOW);
          assert.notEqual(typeof step, 'function');
        }),
      );
    });

    test('any headers at all give a verdict and never throw', () => {
      const names = Object.keys(send({ id: 'a', timestamp: TIMESTAMP, body: new Uint8Array() }));
      const value = fc.oneof(
        fc.string({ unit: anyCharacter }),
        fc.string({ unit: fc.constantFrom(...'v1a,t=0 9Azf+/') }),
        fc.array(fc.string()),
        fc.constant(undefined),
      );
      const headers = fc.array(fc.tuple(fc.constantFrom(...names), value)).map(Object.fromEntries);
      fc.assert(
        fc.property(headers, fc.uint8Array(), (sent, body) => {
          assert.equal(verify(verifier, sent, body, NOW).ok, false);
        }),
      );
    });
  });
}
