import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startTestService, type TestService } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';

const MODULE = `
let broken = true;
export default {
  webhook: {
    handlers: {
      paid: () => { if (broken) throw new Error('broken'); },
      mend: () => { broken = false; },
    },
  },
};
`;

/** What these tests look at of a page, and of a delivery. */
interface Shown {
  readonly items: readonly { readonly id: string }[];
  readonly status: string;
  readonly body: unknown;
  readonly jobs: readonly { readonly error: string | null }[];
}

async function get(service: TestService, path: string) {
  const reply = await fetch(`${service.urls.management}/actuator${path}`);
  return { status: reply.status, json: (await reply.json()) as Shown };
}

async function send(service: TestService, event: string): Promise<void> {
  const body = JSON.stringify({ event });
  const reply = await fetch(`${service.urls.webhook}/webhook`, { method: 'POST', body });
  assert.equal(reply.status, 200);
}

test('a dead delivery is found, replayed and handled by the service that runs', async () => {
  await using service = await startTestService({
    module: MODULE,
    env: {
      MANAGEMENT_INCLUDE: 'deliveries',
      MANAGEMENT_ENDPOINT_ACCESS: 'deliveries=unrestricted',
      WEBHOOK_ATTEMPTS: '1',
    },
  });
  await service.listen();
  await send(service, 'paid');
  const dead = async () => (await get(service, '/deliveries?status=dead')).json.items;
  const id = await waitFor('it to be dead', async () => (await dead())[0]?.id);
  const { json } = await get(service, `/deliveries/${id}`);
  assert.deepEqual([json.body, json.jobs[0]?.error], [{ event: 'paid' }, 'Error: broken']);
  await send(service, 'mend');
  await waitFor(
    'it to be mended',
    async () => (await get(service, '/deliveries?status=done')).json.items.length === 1,
  );

  const reply = await fetch(`${service.urls.management}/actuator/deliveries/${id}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"action":"replay"}',
  });
  assert.equal(reply.status, 204);
  await waitFor(
    'it to be done',
    async () => (await get(service, `/deliveries/${id}`)).json.status === 'done',
  );
});

test('without being named it is not there; * shows it to read', async () => {
  await using closed = await startTestService();
  await closed.listen();
  assert.equal((await get(closed, '/deliveries')).status, 404);
  await using open = await startTestService({ env: { MANAGEMENT_INCLUDE: '*' } });
  await open.listen();
  assert.equal((await get(open, '/deliveries')).status, 200);
  const reply = await fetch(`${open.urls.management}/actuator/deliveries/x`, { method: 'POST' });
  assert.equal(reply.status, 405);
});

test('for the management door alone no database is made', async () => {
  const env = { MANAGEMENT_INCLUDE: '*', INTERFACES: 'management' };
  await using service = await startTestService({ env, database: 'file' });
  await service.listen();
  assert.equal((await get(service, '/deliveries')).status, 404);
  assert.equal(existsSync(join(service.folder, 'portico.db')), false);
});
