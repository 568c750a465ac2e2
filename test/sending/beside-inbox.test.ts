import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { openDatabase } from '../../src/sql/open.ts';
import { startReceiver } from '../support/receiver.ts';
import { sendingEngines } from '../support/sending.ts';
import { startTestService } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';

for (const [engine, { skip, url }] of Object.entries(sendingEngines)) {
  describe(`events beside deliveries on ${engine}`, { skip }, () => {
    test('handlers and forward addresses get no event of a tenant, and its failures are not those of the inbox', async () => {
      await using receiver = await startReceiver({
        '/broken': (response, attempt) => response.writeHead(attempt === 1 ? 500 : 204).end(),
      });
      const at = await url();
      await using service = await startTestService({
        module: `export default { webhook: {
          forward: { all: { url: '${receiver.url}/forwarded', allowPrivate: true } },
          handlers: { paid: () => { throw new Error('a handler got an event of a tenant'); } },
          sending: { allowPrivate: true, attempts: 1 },
        } };`,
        database: 'file',
        env: {
          MANAGEMENT_INCLUDE: 'deliveries',
          MANAGEMENT_ENDPOINT_ACCESS: 'deliveries=unrestricted',
          ...(at !== undefined && { DATABASE_URL: at }),
        },
        listens: true,
      });
      const { rest, management } = service.urls;
      const post = async (to: string, body: object) => {
        const response = await fetch(to, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        });
        return { status: response.status, body: await response.text() };
      };
      await post(`${rest}/webhooks/tenants/acme/endpoints`, { url: `${receiver.url}/broken` });
      await post(`${rest}/webhooks/tenants/acme/endpoints`, { url: `${receiver.url}/sound` });
      const { id } = JSON.parse(
        (await post(`${rest}/events`, { tenant: 'acme', type: 'paid', data: 1 })).body,
      );
      await using database = await openDatabase(at ?? service.databaseUrl);
      await waitFor('its death', async () => (await database.deliveries.find(id))?.status === 'dead');
      assert.deepEqual(await database.inbox.backlog(), { open: 0, oldestAt: undefined, dead: 0 });
      assert.deepEqual(await database.deliveries.failing(), { dead: 0, targets: [] });
      assert.deepEqual(await database.inbox.deadLetters(Date.now() + 60_000, 0), []);
      // An operator's replay repeats what is dead, and nothing else.
      const replayed = await post(`${management}/actuator/deliveries/${id}`, { action: 'replay' });
      assert.ok(replayed.status < 300, `${replayed.status} ${replayed.body}`);
      await waitFor('the repetition', () => receiver.at('/broken').length === 2);
      await waitFor('its end', async () => (await database.deliveries.find(id))?.status === 'done');
      assert.equal(receiver.at('/sound').length, 1);
      assert.deepEqual(receiver.at('/forwarded'), []);
    });
  });
}
