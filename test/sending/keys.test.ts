import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { client } from '../../src/client.ts';
import { requestDigest } from '../../src/sending/publisher.ts';
import { startReceiver } from '../support/receiver.ts';
import { runOn, type SendingReply, startSending, storedEngines } from '../support/sending.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const EVENT = { tenant: 'acme', type: 'a', data: { n: 1, list: [1, { x: null, y: 'z' }] } };
const LATER = '2100-01-01T00:00:00Z';
/** The same event, written otherwise. */
const SAME = [
  EVENT,
  { data: { list: [1, { y: 'z', x: null }], n: 1 }, type: 'a', tenant: 'acme' },
  ' {"tenant":"acme", "type":"a", "data":{"n":1.0,"list":[1,{"x":null,"y":"\\u007a"}]}}',
];
/** Other events. */
const OTHERS = [
  { ...EVENT, type: 'b' },
  { ...EVENT, data: { ...EVENT.data, n: 2 } },
  { ...EVENT, data: { ...EVENT.data, more: null } },
  { ...EVENT, data: { n: 1, list: [{ x: null, y: 'z' }, 1] } },
  { ...EVENT, channels: ['eu'] },
  { ...EVENT, runAt: LATER },
];
const key = { 'idempotency-key': 'one' };

function assertReused(reply: SendingReply): void {
  assert.deepEqual(
    [reply.status, reply.body.code, reply.headers.get('x-error-code')],
    [422, 'IDEMPOTENCY_KEY_REUSED', 'IDEMPOTENCY_KEY_REUSED'],
  );
}

for (const [engine, { skip, url: urlOf }] of Object.entries(storedEngines)) {
  describe(`keys of events on ${engine}`, { skip }, () => {
    test('a known key has the first event for the same request, and refuses another one', async () => {
      await using folder = await temporaryFolder();
      await using receiver = await startReceiver({ '/acme': (response) => response.writeHead(400).end() });
      const url = await urlOf(folder.path);
      await using sending = await startSending(url, { attempts: 1 });
      const { id: endpoint } = await sending.endpoint('acme', { url: `${receiver.url}/acme` });
      const { call } = sending;
      const first = await call('POST', '/events', EVENT, key);
      assert.equal(first.status, 202);
      const dead = async () =>
        (await call('GET', `/webhooks/tenants/acme/endpoints/${endpoint}/events?status=dead`)).body.items
          .length;
      await waitFor('the end of its only attempt', async () => (await dead()) === 1);
      const check = async () => {
        for (const other of OTHERS) {
          assertReused(await call('POST', '/events', other, key));
          assertReused(await call('POST', '/events', { ...other, key: 'one' }));
        }
      };
      await check();
      // Another event gives no endpoint what was given up, and the same event does.
      assert.deepEqual([await dead(), receiver.got.length], [1, 1]);
      for (const [i, same] of SAME.entries()) {
        const repeated = await call('POST', '/events', same, { ...key, 'content-type': 'application/json' });
        assert.deepEqual([repeated.status, repeated.body], [200, { id: first.body.id }]);
        await waitFor('another attempt', async () => receiver.got.length === 2 + i && (await dead()) === 1);
      }
      // The key of another tenant is another key.
      assert.equal((await call('POST', '/events', { ...EVENT, tenant: 'beta' }, key)).status, 202);
      const { body } = await call('GET', '/webhooks/tenants/acme/events');
      assert.equal(body.items.length, 1);

      // As retention leaves it.
      const kept = `INSERT INTO remembered_keys (source, dedup_key, id, received_at)
        SELECT source, dedup_key, id, received_at FROM deliveries WHERE source = 'tenant:acme'`;
      const event = `(SELECT seq FROM deliveries WHERE source = 'tenant:acme')`;
      await runOn(
        url,
        `${kept}; DELETE FROM attempts WHERE job IN (SELECT seq FROM jobs WHERE delivery IN ${event});
        DELETE FROM jobs WHERE delivery IN ${event}; DELETE FROM deliveries WHERE source = 'tenant:acme'`,
      );
      await check();
      assert.deepEqual((await call('POST', '/events', EVENT, key)).body, { id: first.body.id });
    });

    test('lines are refused one by one, and before anything is stored if they contradict each other', async () => {
      await using folder = await temporaryFolder();
      await using sending = await startSending(await urlOf(folder.path));
      const publish = (...events: readonly object[]) =>
        sending.call('POST', '/events', `\n${events.map((each) => JSON.stringify(each)).join('\n')}`, {
          'content-type': 'application/x-ndjson',
        });
      const count = async () =>
        (await sending.call('GET', '/webhooks/tenants/acme/events')).body.items.length as number;
      const [one, two, three] = ['one', 'two', 'three'].map((name) => ({ ...EVENT, key: name }));
      const pointers = (reply: SendingReply) => {
        assertReused(reply);
        return reply.body.errors.map(({ pointer }: { readonly pointer: string }) => pointer);
      };
      assert.deepEqual(pointers(await publish({ ...one }, { ...two }, { ...one, data: 7 })), ['#/3/key']);
      assert.equal(await count(), 0);
      const stored = await publish({ ...one }, { ...one }, { ...EVENT });
      assert.equal(stored.status, 202);
      assert.equal(stored.body.events[0].id, stored.body.events[1].id);
      assert.deepEqual(pointers(await publish({ ...two }, { ...one, data: 7 }, { ...three })), ['#/2/key']);
      assert.equal(await count(), 4);
      const again = await publish({ ...two }, { ...one }, { ...three });
      assert.equal(again.status, 202);
      assert.equal(await count(), 4);
      const portico = client(sending.service.urls.rest ?? '');
      const other = portico.events.publish({ ...EVENT, data: 7 }, { idempotencyKey: 'one' });
      await assert.rejects(other, { code: 'IDEMPOTENCY_KEY_REUSED', status: 422 });
    });

    test('of different events with one key at the same time one is stored', async () => {
      await using folder = await temporaryFolder();
      const url = await urlOf(folder.path);
      await using one = await startSending(url);
      // A second process, where the engine allows one.
      await using two = engine === 'sqlite' ? undefined : await startSending(url);
      for (let round = 0; round < 20; round++) {
        const replies = await Promise.all(
          Array.from({ length: 6 }, (_, n) =>
            ((n % 2 === 1 ? two : undefined) ?? one).call(
              'POST',
              '/events',
              { ...EVENT, data: n >> 1 },
              { 'idempotency-key': `${round}` },
            ),
          ),
        );
        const stored = replies.filter(({ status }) => status === 202);
        const repeated = replies.filter(({ status }) => status === 200);
        const refused = replies.filter(({ status }) => status === 422);
        assert.deepEqual([stored.length, repeated.length, refused.length], [1, 1, 4]);
        assert.equal(stored[0]?.body.id, repeated[0]?.body.id);
      }
    });
  });
}

test('requests have the same digest exactly if their members are the same in any order', () => {
  const digest = (data: unknown) => requestDigest({ ...EVENT, data, key: 'k' });
  const turned = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(turned);
    if (typeof value !== 'object' || value === null) return value;
    const entries = Object.entries(value).map(([name, each]) => [name, turned(each)] as const);
    return Object.fromEntries(entries.reverse());
  };
  // As a request has them: without a negative zero.
  const json = fc.jsonValue({ maxDepth: 4 }).map((value) => JSON.parse(JSON.stringify(value)));
  fc.assert(
    fc.property(json, json, (one, other) => {
      assert.equal(digest(turned(one)), digest(one));
      assert.equal(digest(one) === digest(other), isDeepStrictEqual(one, other));
      assert.equal(digest([one, other]) === digest([other, one]), isDeepStrictEqual(one, other));
    }),
  );
  const deep = JSON.parse('['.repeat(50_000) + ']'.repeat(50_000));
  assert.match(digest(deep), /^[0-9a-f]{12}$/);
});
