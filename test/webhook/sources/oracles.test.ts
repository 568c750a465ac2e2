import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sign as githubSign, verify as githubVerify, verifyWithFallback } from '@octokit/webhooks-methods';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import Stripe from 'stripe';
import { github, stripe } from '../../../src/signatures/hmac.ts';
import { standard } from '../../../src/signatures/standard.ts';
import { rounds } from '../../support/proof-settings.ts';
import { verify } from '../../support/signed-requests.ts';

// The senders' own libraries decide what is right: what they sign passes, what they sign is what we sign, and
// whatever passes here passes there. Texts only, since they decode bytes before they look at them.
const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 300 });
const secret = fc.string({ unit: fc.constantFrom(...'abcXYZ019_-!'), minLength: 1 });

/** A text of a header with something done to it, or not. */
const damage = fc.oneof(
  { weight: 2, arbitrary: fc.constant((value: string) => value) },
  fc.constantFrom(
    (value: string) => value.toUpperCase(),
    (value: string) => `${value}, ${value}`,
    (value: string) => `${value} ${value}`,
    (value: string) => `${value}junk`,
    (value: string) => value.replace('=', ''),
    (value: string) => value.replace('1', '2'),
    (value: string) => ` ${value}`,
    () => '',
  ),
  fc.tuple(fc.nat(), fc.constantFrom(...'v1a,t= 0Af+/')).map(([at, character]) => (value: string) => {
    const index = at % (value.length + 1);
    return `${value.slice(0, index)}${character}${value.slice(index + 1)}`;
  }),
);
const sameOrOther = fc.oneof(fc.constant(undefined), text);

function passes(check: () => unknown): boolean {
  try {
    return check() !== false;
  } catch {
    return false;
  }
}

/** What `run` says of each case; fails when no case or every case passed, which would prove nothing. */
function bothWays(run: (count: (passed: boolean) => void) => void): void {
  const seen = new Set<boolean>();
  run((passed) => seen.add(passed));
  assert.deepEqual(seen, new Set([true, false]));
}

describe('standardwebhooks', () => {
  const key = fc
    .uint8Array({ minLength: 24, maxLength: 64 })
    .map((bytes) => `whsec_${Buffer.from(bytes).toString('base64')}`);
  const id = fc.string({ unit: fc.constantFrom(...'abcXYZ019_-'), minLength: 1 });
  // Their clock cannot be set; no offset is near the edge of 300 s.
  const offset = fc.integer({ min: -290, max: 290 });
  const params = { headerPrefix: 'webhook', tolerance: 300 };

  test('the same signatures, which pass', () => {
    fc.assert(
      fc.property(key, id, offset, fc.oneof(text, fc.constant('')), (shared, message, seconds, payload) => {
        const now = Date.now();
        const timestamp = Math.floor(now / 1000) + seconds;
        const body = Buffer.from(payload);
        const headers = {
          'webhook-id': message,
          'webhook-timestamp': String(timestamp),
          'webhook-signature': new Webhook(shared).sign(message, new Date(timestamp * 1000), payload),
        };
        assert.deepEqual(standard(params).signer([shared])({ id: message, timestamp, body }), headers);
        assert.deepEqual(verify(standard(params).verifier([shared]), headers, body, now), { ok: true });
        new Webhook(shared).verify(payload, headers, { jsonParse: false });
      }),
    );
  });

  test('whatever passes here passes there', () => {
    const far = fc.oneof({ weight: 4, arbitrary: offset }, fc.constantFrom(-86_400, -310, 310, 86_400));
    bothWays((count) =>
      fc.assert(
        fc.property(
          fc.record({ shared: key, id, seconds: far, payload: text, other: sameOrOther }),
          fc.record({ id: damage, timestamp: damage, signature: damage }),
          ({ shared, id: message, seconds, payload, other }, damaged) => {
            const now = Date.now();
            const timestamp = Math.floor(now / 1000) + seconds;
            const signature = new Webhook(shared).sign(message, new Date(timestamp * 1000), payload);
            const headers = {
              'webhook-id': damaged.id(message),
              'webhook-timestamp': damaged.timestamp(String(timestamp)),
              'webhook-signature': damaged.signature(signature),
            };
            const sent = other ?? payload;
            const ours = verify(standard(params).verifier([shared]), headers, Buffer.from(sent), now);
            count(ours.ok);
            const theirs = () => new Webhook(shared).verify(sent, headers, { jsonParse: false });
            if (ours.ok) assert.ok(passes(() => [theirs()]));
          },
        ),
        { numRuns: rounds(1000) },
      ),
    );
  });

  test('what they let through and must not', () => {
    const shared = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;
    const now = Date.now();
    const timestamp = Math.floor(now / 1000);
    const [body, other] = [0xff, 0xfe].map((byte) => Buffer.from([0x22, byte, 0x22]));
    assert.ok(body && other);
    const headers = standard(params).signer([shared])({ id: 'msg_1', timestamp, body });
    const check = (sent: typeof headers, bytes: Uint8Array) =>
      verify(standard(params).verifier([shared]), sent, bytes, now);
    assert.deepEqual(check(headers, body), { ok: true });
    assert.deepEqual(check(headers, other), { ok: false, reason: 'wrong-signature' });
    const junk = { ...headers, 'webhook-timestamp': `${timestamp}junk` };
    assert.deepEqual(check(junk, body), { ok: false, reason: 'malformed-timestamp' });
  });
});

describe('@octokit/webhooks-methods', () => {
  const check = (secrets: readonly string[], signature: string, payload: string) =>
    verify(github.verifier(secrets), { 'x-hub-signature-256': signature }, Buffer.from(payload), 0).ok;

  test('the same signatures, which pass', async () => {
    await fc.assert(
      fc.asyncProperty(secret, text, async (shared, payload) => {
        const signature = await githubSign(shared, payload);
        const headers = github.signer([shared])({ id: '1', timestamp: 0, body: Buffer.from(payload) });
        assert.deepEqual(headers, { 'x-hub-signature-256': signature });
        assert.ok(check([shared], signature, payload));
      }),
    );
  });

  test('the same verdict on every signature and body', async () => {
    const seen = new Set<boolean>();
    await fc.assert(
      fc.asyncProperty(secret, text, sameOrOther, damage, async (shared, payload, other, damaged) => {
        const signature = damaged(await githubSign(shared, payload));
        const sent = other ?? payload;
        const theirs = signature !== '' && (await githubVerify(shared, sent, signature));
        seen.add(theirs);
        assert.equal(check([shared], signature, sent), theirs);
      }),
      { numRuns: rounds(500) },
    );
    assert.deepEqual(seen, new Set([true, false]));
  });

  test('the same verdict while a secret is rotated', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(secret, { minLength: 1 }),
        secret,
        text,
        async (secrets, signing, payload) => {
          const signature = await githubSign(signing, payload);
          const [first = '', ...more] = secrets;
          const theirs = await verifyWithFallback(first, payload, signature, more);
          assert.equal(check(secrets, signature, payload), theirs);
          assert.ok(check([...secrets, signing], signature, payload));
        },
      ),
    );
  });
});

describe('stripe', () => {
  const { webhooks } = new Stripe('sk_test_unused');
  const NOW = 1_700_000_000;
  const tolerance = 300;
  const check = (shared: string, header: string, payload: string, now: number) =>
    verify(stripe(tolerance).verifier([shared]), { 'stripe-signature': header }, Buffer.from(payload), now)
      .ok;
  const theirCheck = (shared: string, header: string, payload: string, now: number) =>
    passes(() => webhooks.signature?.verifyHeader(payload, header, shared, tolerance, undefined, now));

  test('the same signatures, which pass', () => {
    fc.assert(
      fc.property(secret, text, (shared, payload) => {
        const header = webhooks.generateTestHeaderString({ payload, secret: shared, timestamp: NOW });
        const sign = stripe(tolerance).signer([shared]);
        assert.deepEqual(sign({ id: '1', timestamp: NOW, body: Buffer.from(payload) }), {
          'stripe-signature': header,
        });
        assert.ok(check(shared, header, payload, NOW * 1000));
      }),
    );
  });

  test('a real event, constructed there and verified here', () => {
    const payload = JSON.stringify({ id: 'evt_1', object: 'event', type: 'charge.succeeded' });
    const [header] = Object.values(
      stripe(tolerance).signer(['new', 'old'])({ id: '1', timestamp: NOW, body: Buffer.from(payload) }),
    );
    for (const shared of ['old', 'new']) {
      const event = webhooks.constructEvent(payload, header ?? '', shared, tolerance, undefined, NOW * 1000);
      assert.equal(event.id, 'evt_1');
      assert.ok(check(shared, header ?? '', payload, NOW * 1000));
    }
  });

  test('whatever passes here passes there, and the past ends at the same second', () => {
    bothWays((count) =>
      fc.assert(
        fc.property(
          fc.record({ shared: secret, payload: text, other: sameOrOther, damaged: damage }),
          fc.constantFrom(-301_000, -300_000, -1, 0, 1, 300_999, 301_000),
          ({ shared, payload, other, damaged }, offset) => {
            const header = webhooks.generateTestHeaderString({ payload, secret: shared, timestamp: NOW });
            const [sent, now] = [other ?? payload, NOW * 1000 + offset];
            const ours = check(shared, damaged(header), sent, now);
            count(ours);
            if (ours) assert.ok(theirCheck(shared, damaged(header), sent, now));
            // Untouched requests differ in one way only: theirs may come from the future.
            if (damaged(header) === header && offset >= 0)
              assert.equal(ours, theirCheck(shared, header, sent, now));
          },
        ),
        { numRuns: rounds(1000) },
      ),
    );
  });
});
