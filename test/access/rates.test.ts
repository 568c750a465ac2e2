import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { connectSocket } from '../graphql/support/socket-client.ts';
import { keepConnection } from '../support/connections.ts';
import { startTestService } from '../support/service.ts';
import { bearer, moduleWith } from './support/tokens.ts';

/** So slow that no request of a test comes back. */
const SLOW = { API_RATE: '1/h', API_BURST: '3' };

for (const fastPath of ['true', 'false']) {
  test(`fast path ${fastPath}: each client has its own rate, by token or else by address`, async () => {
    await using service = await startTestService({
      module: moduleWith(),
      env: {
        INTERFACES: 'rest,graphql,management',
        API_REQUIRED: 'write',
        ...SLOW,
        TRUST_PROXY: 'loopback',
        HTTP_FAST_PATH: fastPath,
      },
    });
    await service.listen();
    using rest = await keepConnection(service.urls.rest ?? '');
    const ask = (headers: Readonly<Record<string, string>>) => rest.ask('/users/9', { headers });
    const from = (address: string) => ask({ 'x-forwarded-for': address });
    const first = await from('203.0.113.1');
    assert.equal(first.status, 200);
    assert.equal(first.headers['ratelimit-policy'], '"client";q=1;w=3600, "burst";q=3');
    assert.equal(first.headers.ratelimit, '"client";r=2;t=3600');
    await from('203.0.113.1');
    // What is refused for its credentials counts as well.
    assert.equal(
      (await ask({ 'x-forwarded-for': '203.0.113.1', authorization: 'Bearer wrong' })).status,
      401,
    );
    const beyond = await from('203.0.113.1');
    assert.equal(beyond.status, 429);
    assert.equal(beyond.headers['x-error-code'], 'RATE_LIMITED');
    assert.match(beyond.headers['retry-after'] ?? '', /^3[56]\d\d$/);
    assert.match(String(beyond.headers.ratelimit), /^"client";r=0;t=\d+$/);
    assert.equal((await from('203.0.113.2')).status, 200);
    const authorization = bearer('reader');
    for (const [address, status] of [
      ['203.0.113.1', 200],
      ['203.0.113.3', 200],
      ['203.0.113.1', 200],
      ['203.0.113.4', 429],
    ] as const) {
      assert.equal((await ask({ 'x-forwarded-for': address, authorization })).status, status, address);
    }
    // Health and probes have no rate.
    for (let i = 0; i < 5; i++) {
      assert.equal((await fetch(`${service.urls.management}/livez`)).status, 200);
    }
  });
}

test('the operations of a batch and of a WebSocket count one by one, a streamed list once', async () => {
  await using service = await startTestService({
    env: {
      INTERFACES: 'rest,graphql',
      ...SLOW,
      GRAPHQL_MAX_BATCH: '9',
      API_BURST: '4',
      TRUST_PROXY: 'loopback',
    },
  });
  await service.listen();
  const url = `${service.urls.graphql}/graphql`;
  const batch = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-for': '203.0.113.1' },
    body: JSON.stringify(Array.from({ length: 6 }, () => ({ query: '{ __typename }' }))),
  });
  const results = (await batch.json()) as { data?: unknown; errors?: { extensions: { code: string } }[] }[];
  assert.deepEqual(
    results.map(({ errors }) => errors?.[0]?.extensions.code),
    [undefined, undefined, undefined, undefined, 'RATE_LIMITED', 'RATE_LIMITED'],
  );

  const client = await connectSocket(url, { headers: { 'x-forwarded-for': '203.0.113.2' } });
  const codes: unknown[] = [];
  for (const id of ['1', '2', '3', '4']) {
    client.subscribe(id, '{ __typename }');
    const { type, payload } = await client.next();
    codes.push(type === 'error' ? payload[0].extensions.code : type);
    if (type === 'next') assert.equal((await client.next()).type, 'complete');
  }
  client.socket.terminate();
  assert.deepEqual(codes, ['next', 'next', 'next', 'RATE_LIMITED']);
});

test('a list that is streamed counts once', async () => {
  await using service = await startTestService({
    database: 'file',
    env: { INTERFACES: 'rest', ...SLOW },
  });
  await service.listen();
  using db = new DatabaseSync(join(service.folder, 'portico.db'), { timeout: 5_000 });
  db.exec(`INSERT INTO users (name, email, version)
    WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
    SELECT 'n' || i, 'e@' || i, 1 FROM n`);
  using rest = await keepConnection(service.urls.rest ?? '');
  const { headers, body } = await rest.ask('/users');
  assert.ok(body.length > 500_000);
  assert.match(String(headers.ratelimit), /^"client";r=2;/);
});
