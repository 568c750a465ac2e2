import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verify } from '../../../test/support/verify-request.ts';
import type { SourceConfig } from '../../config/schema/webhook-sources.ts';
import { readDelivery } from './read-delivery.ts';
import { readSources } from './read-sources.ts';
import { signDelivery } from './sign-delivery.ts';

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
