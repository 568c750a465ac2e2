import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { openDatabase } from '../../src/sql/open.ts';
import { engineUrls } from '../support/databases.ts';
import { FORWARD_SECRET, forwards, startReceiver } from '../support/receiver.ts';
import { startWebhooks } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';

const ENV = { INTERFACES: 'rest,webhook,management' };
const person = (name: string) => ({ name, email: `${name}@x` });

type Receiver = Awaited<ReturnType<typeof startReceiver>>;

/** What a path was told: the type, the id and the name of each change, as they arrived. */
const told = (receiver: Receiver, path: string) =>
  receiver.at(path).map(({ body }) => {
    const { type, data } = JSON.parse(body.toString());
    return `${type} ${data.id} ${data.name}`;
  });

for (const [engine, databaseUrl] of Object.entries(engineUrls)) {
  describe(`forwarding of changes of users on ${engine}`, () => {
    test('addresses that want them get signed changes, and nobody else does', async () => {
      await using receiver = await startReceiver();
      const module = forwards(
        receiver.url,
        `crm: to('/crm', { users: true }),
         leavers: to('/leavers', { users: ['deleted'], events: ['left'] }),
         ada: to('/ada', { users: true, when: { pointer: '/data/name', is: 'ada' } }),
         all: to('/all'),
         named: to('/named', { events: ['user.created'] })`,
      );
      await using door = await startWebhooks(await databaseUrl(), module, ENV);
      const { rest = '' } = door.service.urls;
      const send = async (method: string, path: string, body?: unknown, type = 'application/json') => {
        const text = typeof body === 'string' ? body : JSON.stringify(body);
        const headers = { 'content-type': type };
        const reply = await fetch(`${rest}${path}`, { method, headers, body: text ?? null });
        assert.equal(reply.status, 200, await reply.text());
      };
      await send('POST', '/users', person('ada'));
      await send('PUT', '/update/1', person('ada2'));
      await send('POST', '/users', 'name,email\nb,b@x\nc,c@x\n', 'text/csv');
      await send('DELETE', '/delete/1');
      // Senders may call their events as they like.
      await door.post({ event: 'user.created', data: { id: 99, name: 'sent' } });
      await door.post({ event: 'left', data: { id: 98, name: 'sent' } });
      await waitFor('all changes', () => receiver.at('/crm').length === 5);
      await waitFor('the deleted one and the event', () => receiver.at('/leavers').length === 2);
      await waitFor('the rest', () => receiver.at('/all').length === 2 && receiver.at('/named').length === 1);
      await waitFor('the filtered one', () => receiver.at('/ada').length === 1);
      const changes = told(receiver, '/crm');
      assert.deepEqual(
        changes.filter((change) => change.includes(' 1 ')),
        ['user.created 1 ada', 'user.updated 1 ada2', 'user.deleted 1 ada2'],
      );
      assert.deepEqual(changes.filter((change) => !change.includes(' 1 ')).sort(), [
        'user.created 2 b',
        'user.created 3 c',
      ]);
      assert.ok(told(receiver, '/leavers').includes('user.deleted 1 ada2'));
      assert.deepEqual(told(receiver, '/ada'), ['user.created 1 ada']);
      for (const { headers, body } of receiver.at('/crm')) {
        new Webhook(FORWARD_SECRET).verify(body.toString(), headers as Record<string, string>);
        assert.match(JSON.parse(body.toString()).timestamp, /^\d{4}-.*Z$/);
      }
      assert.equal(new Set(receiver.at('/crm').map(({ headers }) => headers['webhook-id'])).size, 5);
      assert.match(receiver.at('/named')[0]?.body.toString() ?? '', /"sent"/);
    });

    test('changes of one user wait for each other where an attempt fails', async () => {
      await using receiver = await startReceiver({
        '/crm': (response, attempt) => response.writeHead(attempt < 4 ? 500 : 204).end(),
      });
      const module = forwards(receiver.url, `crm: to('/crm', { users: true })`);
      await using door = await startWebhooks(await databaseUrl(), module, ENV);
      const users = `${door.service.urls.rest}/users`;
      await fetch(users, { method: 'POST', body: JSON.stringify(person('a')) });
      await fetch(`${door.service.urls.rest}/delete/1`, { method: 'DELETE' });
      await waitFor('the deletion', () => told(receiver, '/crm').includes('user.deleted 1 a'));
      assert.deepEqual(told(receiver, '/crm'), [
        ...Array.from({ length: 4 }, () => 'user.created 1 a'),
        'user.deleted 1 a',
      ]);
    });

    test('what was changed while no service ran is forwarded by the next one, and nothing older', async () => {
      await using receiver = await startReceiver();
      const url = await databaseUrl();
      const change = async (name: string) => {
        await using database = await openDatabase(url);
        await database.users.create(person(name));
      };
      await change('older');
      const module = forwards(receiver.url, `crm: to('/crm', { users: true })`);
      {
        await using door = await startWebhooks(url, module, ENV);
        const body = JSON.stringify(person('first'));
        await fetch(`${door.service.urls.rest}/users`, { method: 'POST', body });
        await waitFor('the first one', () => receiver.at('/crm').length === 1);
      }
      await change('meanwhile');
      await using door = await startWebhooks(url, module, ENV);
      await waitFor('the one from before', () => receiver.at('/crm').length === 2);
      await fetch(`${door.service.urls.rest}/delete/1`, { method: 'DELETE' });
      await waitFor('the deletion', () => receiver.at('/crm').length === 3);
      assert.deepEqual(told(receiver, '/crm'), [
        'user.created 2 first',
        'user.created 3 meanwhile',
        'user.deleted 1 older',
      ]);
    });
  });
}
