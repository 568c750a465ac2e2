import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { postgresUrl, withoutPostgres } from '../support/databases.ts';
import { startReceiver } from '../support/receiver.ts';
import { sendingEngines, startSending } from '../support/sending.ts';
import { waitFor } from '../support/wait-for.ts';

test('an event published through one process reaches the endpoints that another has just acknowledged', {
  skip: withoutPostgres ?? false,
}, async () => {
  await using receiver = await startReceiver();
  const url = await postgresUrl();
  await using one = await startSending(url);
  await using other = await startSending(url);
  const seen = (path: string) =>
    receiver
      .at(path)
      .map(({ body }) => JSON.parse(String(body)))
      .map(({ type, data }) => `${type} ${data}`);
  const published: string[] = [];
  const due = new Map<string, () => readonly string[]>();
  for (let i = 0; i < 10; i++) {
    const [makes, publishes] = i % 2 === 0 ? [one, other] : [other, one];
    const publish = async (type: string) => {
      await publishes.publish({ tenant: 'acme', type, data: i });
      published.push(`${type} ${i}`);
    };
    const path = `/${i}`;
    const { id } = await makes.endpoint('acme', { url: `${receiver.url}${path}` });
    const before = published.length;
    await publish('made');
    due.set(path, () => published.slice(before));
    if (i % 3 > 0) continue;
    // One that is removed gets nothing that is published afterwards.
    await waitFor(`the event of ${path}`, () => seen(path).length > 0);
    const removed = await makes.call('DELETE', `/webhooks/tenants/acme/endpoints/${id}`);
    assert.equal(removed.status, 204);
    due.set(path, () => [`made ${i}`]);
    await publish('removed');
  }
  for (const [path, events] of due) {
    await waitFor(`the events of ${path}`, () => events().every((each) => seen(path).includes(each)));
    assert.deepEqual([...new Set(seen(path))].toSorted(), events().toSorted());
  }
});

for (const [engine, { skip, url }] of Object.entries(sendingEngines)) {
  describe(`delivery on ${engine}`, { skip }, () => {
    test('what waits for an endpoint is given up when it is disabled, and does not delay it afterwards', async () => {
      await using receiver = await startReceiver();
      await using sending = await startSending(await url());
      const { id } = await sending.endpoint('acme', { url: `${receiver.url}/` });
      const at = `/webhooks/tenants/acme/endpoints/${id}`;
      const runAt = new Date(Date.now() + 3_000).toISOString();
      for (let i = 0; i < 30; i++) await sending.publish({ tenant: 'acme', type: 'planned', data: i, runAt });
      assert.equal((await sending.call('PATCH', at, { enabled: false })).status, 200);
      const stats = async () => (await sending.call('GET', `${at}/stats`)).body.byStatus;
      await waitFor('all to be given up', async () => (await stats()).dead === 30);
      assert.equal((await sending.call('PATCH', at, { enabled: true })).status, 200);
      await sending.publish({ tenant: 'acme', type: 'later', data: 1 });
      await waitFor('the later one', () => receiver.at('/').length === 1);
    });

    test('events with the same key are sent one after the other, and others meanwhile', async () => {
      await using receiver = await startReceiver({
        '/': (response, attempt) => response.writeHead(attempt < 4 ? 500 : 204).end(),
      });
      await using sending = await startSending(await url());
      await sending.endpoint('acme', { url: `${receiver.url}/`, order: '/data/key' });
      for (let n = 0; n < 6; n++)
        await sending.publish({ tenant: 'acme', type: 'a', data: { key: n % 2, n } });
      const sent = () => receiver.at('/').map(({ body }) => JSON.parse(String(body)).data.n as number);
      await waitFor('all of them', () => new Set(sent()).size === 6);
      for (const key of [0, 1]) {
        const own = sent().filter((n) => n % 2 === key);
        assert.deepEqual(own, own.toSorted(), `the events of key ${key}`);
      }
      assert.ok(sent().length >= 9, 'those that failed were sent again');
    });

    test('events with the same key follow each other no faster than the rate of the endpoint', async () => {
      await using receiver = await startReceiver();
      await using sending = await startSending(await url());
      const settings = { order: '/data/key', types: ['slow'] };
      await sending.endpoint('acme', { url: `${receiver.url}/`, ...settings, rate: '1/h' });
      await sending.endpoint('acme', { url: `${receiver.url}/free`, ...settings });
      for (let n = 0; n < 8; n++)
        await sending.publish({ tenant: 'acme', type: 'slow', data: { key: 1, n } });
      await waitFor('the other endpoint to have them', () => receiver.at('/free').length === 8);
      await waitFor('the first one', () => receiver.at('/').length >= 1);
      assert.equal(receiver.at('/').length, 1);
    });
  });
}
