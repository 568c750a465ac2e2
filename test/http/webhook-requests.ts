import { github, hmac, slack, stripe, timestampAndBody, token } from '../../src/signatures/hmac.ts';
import { standard } from '../../src/signatures/standard.ts';
import type { Line, OddRequests } from '../support/odd-requests.ts';
import { brokenBodies, JSON_LABEL } from './door-requests.ts';

export const webhook: OddRequests = {
  methods: ['POST', 'GET', 'HEAD', 'PUT', 'OPTIONS'],
  targets: [
    '/webhook',
    '/webhook/',
    '/webhook?x=1',
    '/webhook/x',
    '/Webhook',
    'http://h/webhook',
    '/',
    '/x',
    '*',
  ],
  headers: [
    'X-Webhook-Token: sesame',
    'x-webhook-token: wrong',
    'x-webhook-token:',
    'Webhook-Id: 7',
    `Idempotency-Key: ${'k'.repeat(256)}`,
    'Content-Type: text/plain',
    'Content-Type: nonsense',
    'Content-Type:',
    'Accept: text/html',
  ],
  usual: ['X-Webhook-Token: sesame', JSON_LABEL],
  bodies: [
    '{"event":"nobody.knows","data":{"a":1}}',
    '{"event":7}',
    '{}',
    `{"event":"x"${' '.repeat(300 - 13)}}`,
    `{"event":"x"${' '.repeat(301 - 13)}}`,
    `{"event":"x"${' '.repeat(250 - 12)}`,
    ...brokenBodies,
  ],
};

const secrets = ['sesame'];
const standardSecrets = ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'];
const tolerance = 300;
const own = {
  header: 'x-own-signature',
  algorithm: 'sha256',
  encoding: 'base64',
  timestampHeader: 'x-own-time',
} as const;

/** Signed sources as they stand in a configuration, one of each scheme. */
export const sources = {
  shop: { scheme: 'token', header: 'x-shop', secrets },
  hub: { scheme: 'github', secrets },
  pay: { scheme: 'stripe', secrets },
  chat: { scheme: 'slack', secrets },
  standard: { scheme: 'standard', secrets: standardSecrets },
  own: { scheme: 'hmac', secrets, ...own, template: '{timestamp}.{body}', event: { header: 'x-own-event' } },
} as const;

export type SourceName = keyof typeof sources;

const signers = {
  shop: token('x-shop').signer(secrets),
  hub: github.signer(secrets),
  pay: stripe(tolerance).signer(secrets),
  chat: slack(tolerance).signer(secrets),
  standard: standard({ headerPrefix: 'webhook', tolerance }).signer(standardSecrets),
  own: hmac({ ...own, prefix: '', tolerance, template: timestampAndBody.fill }).signer(secrets),
};

/** The headers that sign a body, `age` seconds ago; with `wrong` those of another body. */
function signature(name: SourceName, { age = 0, id = '7', wrong = false } = {}): Line {
  return (body) => {
    const timestamp = Math.floor(Date.now() / 1_000) - age;
    const headers = signers[name]({ id, timestamp, body: wrong ? Buffer.from('x') : body });
    return Object.entries(headers)
      .map(([header, value]) => `${header}: ${value}`)
      .join('\r\n');
  };
}

/** Deliveries of a signed source: as its sender signs them, wrongly signed, too old, duplicates. */
export function signed(name: SourceName): OddRequests {
  return {
    ...webhook,
    targets: [
      `/webhook/${name}`,
      `/webhook/${name}/`,
      `/webhook/${name}?x`,
      `/webhook/${name.slice(1)}`,
      `/webhook/%${name.charCodeAt(0).toString(16)}${name.slice(1)}`,
    ],
    headers: [
      signature(name, { wrong: true }),
      signature(name, { age: 2 * tolerance }),
      signature(name, { age: -2 * tolerance }),
      signature(name, { id: '8' }),
      'X-Shop: wrong',
      'x-shop:',
      'X-Hub-Signature: sha1=00',
      'Stripe-Signature: t=1,v1=00',
      'Webhook-Signature: v1,AAAA',
      'Idempotency-Key: 7',
      'X-GitHub-Delivery: 7',
      'X-GitHub-Event: ping',
      'X-Own-Event: nobody.knows',
      'Content-Type: text/plain',
      'Content-Type: application/x-www-form-urlencoded',
      'Content-Type:',
    ],
    usual: [signature(name), JSON_LABEL],
    bodies: [
      '{"event":"nobody.knows","type":"nobody.knows","id":"evt_1","data":{"a":1}}',
      '{"type":"url_verification","challenge":"abc"}',
      '{"type":"nobody.knows","event_id":"1","event":{"type":"nobody.knows"}}',
      'payload=%7B%22a%22%3A1%7D',
      ...webhook.bodies,
    ],
  };
}
