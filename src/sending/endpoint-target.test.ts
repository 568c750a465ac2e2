import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClaimedJob } from '../inbox/delivery.ts';
import { openDatabase } from '../sql/open.ts';
import { endpointTarget } from './endpoint-target.ts';
import { endpointTargetName } from './lanes.ts';
import type { Disabled } from './store.ts';

const LIMITS = {
  attempts: 3,
  timeout: 1_000,
  backoff: 1,
  maxBackoff: 1,
  concurrency: 4,
  concurrencyPerEndpoint: 2,
  concurrencyPerTenant: 4,
  disableAfter: 1_000,
  keptAttempts: 3,
  maxBodyBytes: 1_000,
};

test('an event is not given up for an endpoint that another process has enabled again', async () => {
  await using database = openDatabase('sqlite::memory:');
  const { sending: store } = database;
  let posts = 0;
  const poster = {
    async post() {
      posts++;
      return { status: 204, retryAfter: undefined, excerpt: '' };
    },
    [Symbol.dispose]() {},
  };
  const { target, forget } = endpointTarget({
    store,
    poster,
    limits: LIMITS,
    transforms: new Map(),
    onDisable: () => assert.fail('it has not failed'),
    onError: (error) => assert.fail(String(error)),
  });
  let stored = await store.createEndpoint({
    id: 'ep_1',
    tenant: 'acme',
    settings: { url: 'https://customer.example/in' },
    secrets: [{ secret: `whsec_${Buffer.alloc(24, 1).toString('base64')}`, until: null }],
    disabled: null,
    failingSince: null,
    createdAt: Date.now(),
  });
  const set = async (disabled: Disabled | null) => {
    assert.ok(stored !== undefined);
    stored = await store.changeEndpoint(stored, { ...stored, disabled }, Date.now());
  };
  const job = {
    target: endpointTargetName('acme', 'ep_1'),
    attempt: 1,
    delivery: {
      id: '1',
      event: 'a',
      contentType: 'application/json',
      body: Buffer.from('{"type":"a","data":1}'),
      dataPointer: '/data',
      receivedAt: Date.now(),
    },
  } as unknown as ClaimedJob;
  const run = async () => target.run(job, new AbortController().signal, () => {});
  await run();
  await set('manual');
  forget('ep_1');
  await assert.rejects(run(), /the endpoint is disabled/);
  await set(null);
  const before = posts;
  await run();
  assert.equal(posts, before + 1);
});
