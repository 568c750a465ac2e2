import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isKeepableHeader, isSecretHeader } from './redaction.ts';

const SECRET = [
  'authorization',
  'proxy-authorization',
  'cookie',
  'set-cookie',
  'x-webhook-token',
  'x-gitlab-token',
  'x-telegram-bot-api-secret-token',
  'x-hub-signature',
  'x-hub-signature-256',
  'stripe-signature',
  'svix-signature',
  'webhook-signature',
  'x-slack-signature',
  'x-shopify-hmac-sha256',
  'x-signature-ed25519',
  'signature-input',
  'paypal-transmission-sig',
  'x-trello-webhook',
  'x-api-key',
  'apikey',
  'ocp-apim-subscription-key',
  'x-auth',
  'x-hook-secret',
];
const HARMLESS = [
  'x-github-event',
  'x-github-delivery',
  'webhook-id',
  'webhook-timestamp',
  'idempotency-key',
  'x-shopify-topic',
  'x-shopify-shop-domain',
  'x-gitlab-event-uuid',
  'x-slack-request-timestamp',
  'x-slack-retry-reason',
  'x-request-id',
  'traceparent',
  'user-agent',
  'x-forwarded-for',
  'x-goog-resource-state',
  'x-event-key',
];

test('headers with credentials and signatures are told from others by their names', () => {
  assert.deepEqual(SECRET.filter(isSecretHeader), SECRET);
  assert.deepEqual(HARMLESS.filter(isSecretHeader), []);
});

test('a header may be kept in whatever case it is written, if its name is one', () => {
  assert.equal(isKeepableHeader('X-GitHub-Event'), true);
  for (const name of ['X-Webhook-Token', 'COOKIE', '', 'x event', 'x:y', 'é']) {
    assert.equal(isKeepableHeader(name), false, name);
  }
});
