import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { engineUrls } from '../support/databases.ts';
import { type PorticoProcess, startPortico } from '../support/portico-process.ts';
import { proofCount } from '../support/proof-settings.ts';
import { forwards, startReceiver } from '../support/receiver.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

// PORTICO_PROOF_CHANGE_KILLS: how many kills.
const KILLS = proofCount('PORTICO_PROOF_CHANGE_KILLS', 2);

for (const [engine, databaseUrl] of Object.entries(engineUrls)) {
  const count = engine === 'SQLite' ? 1 : 2;
  describe(`${count} processes on ${engine}`, () => {
    test(`forward each change under one id through ${KILLS} kills`, {
      timeout: 300_000 + KILLS * 100_000,
    }, async () => {
      await using folder = await temporaryFolder();
      await using receiver = await startReceiver();
      const module = forwards(receiver.url, `crm: to('/crm', { users: true })`);
      await writeFile(join(folder.path, 'portico.config.ts'), module);
      const env = {
        DATABASE_URL: await databaseUrl(),
        INTERFACES: 'rest,webhook',
        WEBHOOK_LEASE: '500',
        WEBHOOK_BACKOFF: '10',
      };
      await using processes = new AsyncDisposableStack();
      const begin = async () => {
        const process = processes.use(startPortico({ cwd: folder.path, env }));
        await process.ready();
        return process;
      };
      const running = await Promise.all(Array.from({ length: count }, begin));

      let writes = 0;
      let stopped = false;
      /** Creates and changes users until it is told to stop, at whichever process runs. */
      async function load(worker: number): Promise<void> {
        for (let i = 0; !stopped; i++) {
          const { urls } = running[(worker + i) % count] as PorticoProcess;
          const user = { name: `w${worker}-${i}`, email: 'e@x' };
          const create = fetch(`${urls.rest}/users`, { method: 'POST', body: JSON.stringify(user) });
          const reply = await create.catch(() => undefined);
          if (reply?.ok !== true) {
            await delay(10);
            continue;
          }
          writes++;
          if (i % 3 === 0) {
            const body = JSON.stringify({ ...user, name: `${user.name}-new` });
            const path = reply.headers.get('location')?.replace('/users/', '/update/');
            await fetch(`${urls.rest}${path}`, { method: 'PUT', body }).catch(() => undefined);
          }
        }
      }
      const workers = Array.from({ length: 6 }, (_, worker) => load(worker));
      for (let kill = 0; kill < KILLS; kill++) {
        const before = writes;
        await waitFor('writes', () => writes > before + 100);
        const place = kill % count;
        running[place]?.child.kill('SIGKILL');
        await running[place]?.exited();
        running[place] = await begin();
      }
      const before = writes;
      await waitFor('more writes', () => writes > before + 20);
      stopped = true;
      await Promise.all(workers);

      const list = await fetch(`${running[0]?.urls.rest}/users`);
      const { data } = (await list.json()) as { data: readonly { id: number; name: string }[] };
      assert.ok(data.length >= writes && writes > 100 * KILLS);
      const idsOf = () => {
        const ids = new Map<string, Set<unknown>>();
        for (const { headers, body } of receiver.at('/crm')) {
          const { type, data } = JSON.parse(body.toString());
          const change = `${type} ${data.id} ${data.name}`;
          ids.set(change, (ids.get(change) ?? new Set()).add(headers['webhook-id']));
        }
        return ids;
      };
      const updated = data.filter(({ name }) => name.endsWith('-new'));
      const wanted = [
        ...data.map(({ id, name }) => `user.created ${id} ${name.replace('-new', '')}`),
        ...updated.map(({ id, name }) => `user.updated ${id} ${name}`),
      ];
      await waitFor('all changes', () => idsOf().size >= wanted.length);
      // Whatever else there is to send.
      await delay(1_500);
      const ids = idsOf();
      assert.deepEqual([...ids.keys()].toSorted(), wanted.toSorted());
      assert.deepEqual(
        [...ids].filter(([, { size }]) => size !== 1).map(([change]) => change),
        [],
      );
    });
  });
}
