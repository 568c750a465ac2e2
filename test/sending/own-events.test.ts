import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import pg from 'pg';
import { enqueue } from '../../src/sql/enqueue.ts';
import { startReceiver } from '../support/receiver.ts';
import { sendingEngines, startSending } from '../support/sending.ts';
import { startTestService } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';

const BOOKS = `relations: { books: { columns: { id: { type: 'serial' }, title: { type: 'text' }, shop: { type: 'text', nullable: true }, cost: { type: 'integer', nullable: true, read: { scope: 'cost' } } } } },`;

for (const [engine, { skip, url }] of Object.entries(sendingEngines)) {
  describe(`events of the program on ${engine}`, { skip }, () => {
    test('changes of a relation reach the tenant that the row names, in order', async () => {
      await using receiver = await startReceiver();
      await using sending = await startSending(
        await url(),
        { changes: { books: { tenant: 'shop', events: ['created', 'updated'] } } },
        BOOKS,
      );
      await sending.endpoint('one', { url: `${receiver.url}/one` });
      await sending.endpoint('two', { url: `${receiver.url}/two`, types: ['book.updated', 'books.updated'] });
      const made = await sending.call('POST', '/books', { title: 'a', shop: 'one' });
      assert.equal(made.status, 201);
      for (let i = 0; i < 5; i++) await sending.call('PATCH', `/books/${made.body.id}`, { title: `a${i}` });
      await sending.call('POST', '/books', { title: 'b', shop: 'two' });
      await sending.call('POST', '/books', { title: 'c', shop: null });
      await sending.call('PATCH', `/books/${made.body.id}`, { shop: 'two' });
      await sending.call('DELETE', `/books/${made.body.id}`);
      await waitFor('those of one', () => receiver.at('/one').length === 6);
      await waitFor('that of two', () => receiver.at('/two').length === 1);
      const titles = receiver.at('/one').map(({ body }) => JSON.parse(String(body)).data.row.title);
      assert.deepEqual(titles, ['a', 'a0', 'a1', 'a2', 'a3', 'a4']);
      const [moved] = receiver.at('/two').map(({ body }) => JSON.parse(String(body)));
      assert.equal(moved.data.row.shop, 'two');
      // A rule says who may read it, and no rule names a tenant.
      assert.equal('cost' in moved.data.row, false);
      const { body } = await sending.call('GET', '/webhooks/tenants/two/events');
      assert.equal(body.items.length, 2);
    });
  });
}

test('an event that a program enqueues in its transaction is published after the commit, and only then', async () => {
  await using receiver = await startReceiver();
  await using service = await startTestService({
    module: `export default { webhook: { sending: { allowPrivate: true } } };`,
    database: 'file',
    listens: true,
  });
  const made = await fetch(`${service.urls.rest}/webhooks/tenants/acme/endpoints`, {
    method: 'POST',
    body: JSON.stringify({ url: `${receiver.url}/acme` }),
  });
  assert.equal(made.status, 201);
  using db = new DatabaseSync(service.databaseUrl.replace('sqlite:', ''), { timeout: 5_000 });
  db.exec('BEGIN IMMEDIATE');
  enqueue(db, { event: 'a', data: 1, tenant: 'acme' });
  db.exec('ROLLBACK');
  db.exec('BEGIN IMMEDIATE');
  const id = enqueue(db, { event: 'b', data: { n: 2 }, tenant: 'acme', channels: ['eu'] });
  enqueue(db, { event: 'c', data: 3, tenant: 'acme', dedupKey: 'once' });
  enqueue(db, { event: 'c', data: 4, tenant: 'acme', dedupKey: 'once' });
  db.exec('COMMIT');
  await waitFor('both', () => receiver.at('/acme').length === 2);
  const got = receiver
    .at('/acme')
    .map(({ headers, body }) => ({ id: headers['webhook-id'], ...JSON.parse(String(body)) }));
  const b = got.find(({ type }) => type === 'b');
  assert.deepEqual([b?.id, b?.data, b?.channels], [id, { n: 2 }, ['eu']]);
  assert.deepEqual(got.find(({ type }) => type === 'c')?.data, 3);
});

const { skip, url } = sendingEngines.postgres ?? { skip: 'none', url: () => undefined };
test('the same through a client of pg', { skip }, async () => {
  await using receiver = await startReceiver();
  const at = (await url()) ?? '';
  await using sending = await startSending(at);
  await sending.endpoint('acme', { url: `${receiver.url}/acme` });
  const client = new pg.Client({ connectionString: at });
  await client.connect();
  try {
    await client.query('BEGIN');
    const id = await enqueue(client, { event: 'b', data: 2, tenant: 'acme' });
    await client.query('COMMIT');
    await waitFor('it', () => receiver.at('/acme').length === 1);
    assert.equal(receiver.at('/acme')[0]?.headers['webhook-id'], id);
  } finally {
    await client.end();
  }
});
