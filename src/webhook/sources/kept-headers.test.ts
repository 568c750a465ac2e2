import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readConfigured } from '../../../test/support/configured-sources.ts';

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
