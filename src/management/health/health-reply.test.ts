import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KnownSecrets } from '../../core/redaction.ts';
import type { HealthResult } from '../../observability/health/health.ts';
import { cachedHealthReply } from './health-reply.ts';

const V2 = 'application/vnd.spring-boot.actuator.v2+json';

test('a reply is kept while result, Accept header and known secrets are the same', () => {
  const secrets = new KnownSecrets([]);
  const reply = cachedHealthReply({ shown: true, groups: ['ops'], secrets });
  const up: HealthResult = { status: 'UP', components: { a: { status: 'UP', details: { x: 'canary-1' } } } };
  const first = reply(up, undefined);
  assert.equal(
    first.body,
    '{"status":"UP","components":{"a":{"status":"UP","details":{"x":"canary-1"}}},"groups":["ops"]}',
  );
  assert.equal(reply(up, undefined), first);
  assert.equal(reply(up, V2).type, V2);
  assert.equal(
    reply(up, V2).body,
    '{"status":"UP","details":{"a":{"status":"UP","details":{"x":"canary-1"}}},"groups":["ops"]}',
  );
  secrets.add(['canary-1']);
  assert.doesNotMatch(String(reply(up, V2).body), /canary/);
  const down = reply({ status: 'DOWN' }, V2);
  assert.equal(down.status, 503);
  assert.equal(down.body, '{"status":"DOWN","groups":["ops"]}');
});
