import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { postgresUrl, withoutPostgres } from '../support/databases.ts';
import { startReceiver } from '../support/receiver.ts';
import { startTestService } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';

const SECRET = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;

const places = {
  sqlite: async () => ({}),
  ...(withoutPostgres === undefined && { postgres: async () => ({ DATABASE_URL: await postgresUrl() }) }),
};

interface Health {
  readonly status: string;
  readonly details: { readonly deadLetters: string };
}

describe('alerts about dead letters', { concurrency: true }, () => {
  for (const [engine, place] of Object.entries(places)) {
    test(`are signed, retried, survive a restart, and show in health and meters, in ${engine}`, async () => {
      let up = false;
      await using receiver = await startReceiver({
        '/': (response) => response.writeHead(up ? 204 : 500).end(),
      });
      const dead = { url: `${receiver.url}/`, secrets: SECRET, allowPrivate: true, down: true };
      await using service = await startTestService({
        database: 'file',
        module: `export default { webhook: {
          alerts: { dead: ${JSON.stringify(dead)} },
          handlers: { broken: { handler: () => { throw new Error('no'); }, attempts: 1 } },
        } };`,
        env: { WEBHOOK_BACKOFF: '200', MANAGEMENT_INCLUDE: '*', ...(await place()) },
      });
      await service.listen();
      const body = '{"event":"broken"}';
      assert.equal((await fetch(`${service.urls.webhook}/webhook`, { method: 'POST', body })).status, 200);
      await waitFor('a first attempt', () => receiver.got.length > 0);
      await service.current.stop();
      const refused = receiver.got.length;
      up = true;
      await service.restart();
      const good = await waitFor('the alert', () => receiver.got[refused]);
      const said = new Webhook(SECRET).verify(good.body, good.headers as Record<string, string>);
      const { type, data } = said as { type: string; data: { target: string; dead: number } };
      assert.equal(type, 'portico.dead_letters');
      assert.deepEqual([data.target, data.dead], ['handler:broken', 1]);
      assert.equal(good.headers['webhook-id'], receiver.got[0]?.headers['webhook-id']);

      const get = async <T>(path: string) =>
        (await fetch(`${service.urls.management}/actuator${path}`)).json() as Promise<T>;
      const health = await get<Health>('/health/webhookBacklog');
      assert.equal(health.status, 'DOWN');
      assert.match(health.details.deadLetters, /^1 job is dead /);
      type Meter = { readonly measurements: readonly { readonly value: number }[] };
      const meter = async () => (await get<Meter>('/metrics/webhook.dead')).measurements[0]?.value === 1;
      await waitFor('the meter', meter);
      const { items } = await get<{ items: readonly unknown[] }>('/deliveries?source=portico:alert');
      assert.equal(items.length, 1, 'one for the interval');
    });
  }
});
