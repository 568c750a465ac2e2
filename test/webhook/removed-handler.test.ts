import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { postgresUrl, withoutPostgres } from '../support/databases.ts';
import { runPortico, startPortico } from '../support/portico-process.ts';
import { runCommand } from '../support/run-command.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const HANDLERS = {
  broken: `paid: () => { throw new Error('not now'); }`,
  none: '',
  mended: `paid: ({ data }, { log }) => log.info({ data }, 'paid at last')`,
};

const urls: Readonly<Record<string, () => Promise<string>>> = {
  'an SQLite file': async () => 'sqlite:portico.db',
  ...(withoutPostgres === undefined && { PostgreSQL: postgresUrl }),
};

describe('a handler that was taken out of the configuration', { concurrency: true }, () => {
  for (const [engine, urlOf] of Object.entries(urls)) {
    test(`its deliveries end as dead, the backlog is well again, and they are handled once it is back, on ${engine}`, async () => {
      await using folder = await temporaryFolder();
      const cwd = folder.path;
      const env = {
        DATABASE_URL: await urlOf(),
        INTERFACES: 'webhook,management',
        MANAGEMENT_BACKLOG_THRESHOLD: '1',
        MANAGEMENT_SHOW_DETAILS: 'always',
        WEBHOOK_HANDLER_GRACE: '600',
      };
      const start = async (handlers: string) => {
        const module = `export default { webhook: { handlers: { ${handlers} } } };`;
        await writeFile(join(cwd, 'portico.config.ts'), module);
        const service = startPortico({ cwd, env });
        await service.ready();
        return service;
      };
      const stop = async (service: ReturnType<typeof startPortico>) => {
        service.child.kill('SIGTERM');
        assert.equal(await service.exited(), 0);
      };
      const list = async (status: string) => {
        const args = ['deliveries', 'list', '--json', '--status', status];
        return JSON.parse((await runCommand(args, { cwd, env })).stdout).items as readonly { id: string }[];
      };

      await using first = await start(HANDLERS.broken);
      const body = '{"event":"paid","data":7}';
      assert.equal((await fetch(`${first.urls.webhook}/webhook`, { method: 'POST', body })).status, 200);
      await waitFor('an attempt', () =>
        first.logs().find(({ msg }) => String(msg).startsWith('attempt failed')),
      );
      await stop(first);

      await using second = await start(HANDLERS.none);
      const health = async () => {
        const reply = await fetch(`${second.urls.management}/actuator/health/webhookBacklog`);
        return (await reply.json()) as { status: string; details: { open: number; dead: number } };
      };
      assert.equal((await health()).status, 'DOWN');
      const said = await waitFor('it to be dead', () =>
        second.logs().find(({ msg }) => msg === 'orphaned jobs expired'),
      );
      assert.deepEqual([said.target, said.jobs, said.level], ['handler:paid', 1, 'error']);
      const [dead] = await list('dead');
      assert.ok(dead);
      await waitFor('the backlog to be well', async () => (await health()).status === 'UP');
      assert.equal((await health()).details.dead, 1);
      const shown = await runCommand(['deliveries', 'show', dead.id], { cwd, env });
      assert.match(shown.stdout, /restore it and replay/);
      await stop(second);

      await using third = await start(HANDLERS.mended);
      const replayed = await runPortico(['deliveries', 'replay', dead.id], { cwd, env });
      assert.equal(replayed.code, 0, replayed.stderr);
      const handled = await waitFor('it to be handled', () =>
        third.logs().find(({ msg }) => msg === 'paid at last'),
      );
      assert.equal(handled.data, 7);
      await waitFor('it to be done', async () => (await list('done'))[0]?.id === dead.id);
      await stop(third);
    });
  }
});
