import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { client, PorticoError } from '../../src/client.ts';
import { startReceiver } from '../support/receiver.ts';
import { sendingEngines, startSending } from '../support/sending.ts';
import { waitFor } from '../support/wait-for.ts';

async function all<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

const BOOKS = "relations: { books: { columns: { title: { type: 'text' } } } },";

for (const [engine, { skip, url }] of Object.entries(sendingEngines)) {
  describe(`the client of sending on ${engine}`, { skip }, () => {
    test('it publishes one event and many, once for each key', async () => {
      await using receiver = await startReceiver();
      await using sending = await startSending(await url(), {}, BOOKS);
      const portico = client(sending.service.urls.rest ?? '');
      const endpoints = portico.webhooks.endpoints('acme');
      const made = await endpoints.create({ url: `${receiver.url}/all`, filter: { n: { lt: 2 } } });
      assert.match(made.secret, /^whsec_/);
      const event = { tenant: 'acme', type: 'a', data: { n: 0 } };
      const first = await portico.events.publish(event, { idempotencyKey: 'one' });
      assert.deepEqual(first, { id: first.id, endpoints: 1 });
      assert.deepEqual(await portico.events.publish(event, { idempotencyKey: 'one' }), { id: first.id });
      // More than a request takes.
      const many = function* () {
        for (let n = 1; n <= 1_001; n++) yield { ...event, data: { n }, key: `n-${n}` };
      };
      const published = await portico.events.publishAll(many());
      assert.equal(published.length, 1_001);
      assert.equal(
        published.reduce((sum, each) => sum + (each.endpoints ?? 0), 0),
        1,
      );
      const again = await portico.events.publishAll(many());
      assert.deepEqual(
        again.map(({ id }) => id),
        published.map(({ id }) => id),
      );
      await waitFor('both', () => receiver.at('/all').length === 2);
      assert.deepEqual(await portico.events.publishAll([]), []);
      // The rows of a relation are there as before.
      assert.equal(Object(await portico.relation('books').create({ title: 'Emma' })).title, 'Emma');
    });

    test('large events are split by their size, and a refusal names what is wrong', async () => {
      await using sending = await startSending(await url());
      const portico = client(sending.service.urls.rest ?? '');
      // In UTF-8 each character has three bytes: 20 events of 240 kB are more than one request takes.
      const data = '€'.repeat(80_000);
      const large = Array.from({ length: 20 }, () => ({ tenant: 'acme', type: 'a', data }));
      assert.equal((await portico.events.publishAll(large)).length, 20);
      await portico.webhooks.eventTypes.put('b', { schema: { type: 'object' }, example: {} });
      const refused = portico.events.publish({ tenant: 'acme', type: 'b', data: 7 });
      await assert.rejects(refused, (error) => {
        assert.ok(error instanceof PorticoError);
        assert.deepEqual([error.code, error.errors[0]?.pointer], ['EVENT_REFUSED', '#/data']);
        return true;
      });
      const types = await all(portico.webhooks.eventTypes.list());
      assert.deepEqual(
        types.map(({ name }) => name),
        ['b'],
      );
      await portico.webhooks.eventTypes.remove('b');
      assert.deepEqual(await all(portico.webhooks.eventTypes.list()), []);
    });

    test('endpoints are managed, and get events again', async () => {
      await using receiver = await startReceiver();
      await using sending = await startSending(await url(), { portal: { port: 0 } });
      const portico = client(sending.service.urls.rest ?? '');
      const endpoints = portico.webhooks.endpoints('acme');
      const ids = await Promise.all(
        ['a', 'b', 'a'].map(
          async (type) => (await portico.events.publish({ tenant: 'acme', type, data: 1 })).id,
        ),
      );
      const { id, secret } = await endpoints.create({ url: `${receiver.url}/late`, rate: '100/s' });
      const progress = await all(endpoints.replay(id, { since: '1h', types: ['a'] }));
      assert.deepEqual([progress.at(-1)?.examined, progress.at(-1)?.added], [3, 2]);
      await waitFor('the replayed ones', () => receiver.at('/late').length === 2);
      await endpoints.resend(id, ids[1] ?? '');
      await waitFor('the resent one', () => receiver.at('/late').length === 3);
      const done = await waitFor('their ends', async () => {
        const found = await all(endpoints.events(id, { status: 'done' }));
        return found.length === 3 ? found : undefined;
      });
      assert.deepEqual(done.map(({ event }) => event).toSorted(), ids.toSorted());
      const [attempt] = await endpoints.attempts(id, ids[0] ?? '');
      assert.deepEqual([attempt?.attempt, attempt?.outcome, attempt?.status], [1, 'done', 204]);
      const test = await endpoints.test(id);
      await waitFor('the test event', () => receiver.at('/late')[3]?.headers['webhook-id'] === test);

      const later = await endpoints.create({ url: `${receiver.url}/later` });
      const without = await all(endpoints.replay(later.id, { since: '1h' }));
      // The test event was for one endpoint.
      assert.deepEqual([without.at(-1)?.examined, without.at(-1)?.added], [4, 3]);
      await endpoints.remove(later.id);

      const rotated = await endpoints.rotate(id, { overlapHours: 1 });
      assert.notEqual(rotated.secret, secret);
      const changed = await endpoints.change(id, { rate: null, description: 'x', enabled: false });
      assert.deepEqual(
        [changed.rate, changed.description, changed.disabledBecause],
        [undefined, 'x', 'manual'],
      );
      assert.deepEqual(await endpoints.get(id), changed);
      assert.deepEqual(await all(endpoints.list()), [changed]);
      const link = await portico.webhooks.link('acme', { minutes: 5 });
      assert.equal(link.url.split('#')[1], link.token);
      await endpoints.remove(id);
      await assert.rejects(endpoints.get(id), { code: 'NO_ENDPOINT', status: 404 });
      await portico.webhooks.removeTenant('acme');
    });
  });
}

test('the attempts are those of the settings; a repeated request gives an event that was given up new ones', async () => {
  await using receiver = await startReceiver({
    '/x': (response, attempt) => response.writeHead(attempt < 3 ? 500 : 200).end(),
  });
  await using sending = await startSending(undefined, { attempts: 2, backoff: 1, maxBackoff: 1 });
  const portico = client(sending.service.urls.rest ?? '');
  const endpoints = portico.webhooks.endpoints('acme');
  const { id } = await endpoints.create({ url: `${receiver.url}/x` });
  const publish = () =>
    portico.events.publish({ tenant: 'acme', type: 'a', data: 1 }, { idempotencyKey: 'one' });
  await publish();
  const ended = (status: 'dead' | 'done') =>
    waitFor(status, async () => (await all(endpoints.events(id, { status })))[0]);
  assert.equal((await ended('dead')).attempts, 2);
  assert.equal(receiver.at('/x').length, 2);
  await publish();
  assert.equal((await ended('done')).attempts, 1);
});

/** A relation keeps its type; the compiler checks it. */
interface Events {
  readonly events: {
    readonly row: { readonly id: number };
    readonly create: object;
    readonly nested: object;
    readonly put: object;
    readonly patch: object;
    readonly key: number;
    readonly where: object;
    readonly embeds: object;
  };
}

test('a relation that has the name of a member of sending keeps its methods', async () => {
  const asked: string[] = [];
  const portico = client<Events>('http://portico.example', {
    fetch: async (at, { method } = {}) => {
      asked.push(`${method} ${at}`);
      return Response.json({ id: 7 });
    },
  });
  const { id }: { readonly id: number } = await portico.events.get(7);
  assert.equal(id, 7);
  assert.deepEqual(asked, ['GET http://portico.example/events/7']);
  // @ts-expect-error
  assert.equal(typeof portico.events.publish, 'function');
  assert.equal(typeof portico.webhooks.link, 'function');
});
