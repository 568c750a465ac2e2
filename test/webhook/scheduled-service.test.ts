import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { runCommand } from '../support/run-command.ts';
import { startTestService } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';

test('a service stores and handles scheduled deliveries, and the command line shows them', async () => {
  await using service = await startTestService({
    database: 'file',
    module: `export default { webhook: {
      schedules: { tick: { cron: '* * * * * *', event: 'ticked', data: { n: 7 } } },
      handlers: { ticked: ({ data }, { log }) => log.info({ ticked: data }, 'ticked') },
    } };`,
  });
  await service.listen();
  const entry = await waitFor('a tick', () => service.log.entries.find(({ msg }) => msg === 'ticked'));
  const { plannedAt, ...data } = entry.ticked as Record<string, unknown>;
  assert.deepEqual(data, { n: 7, schedule: 'tick' });
  assert.match(String(plannedAt), /\.000Z$/);
  const env = { DATABASE_URL: `sqlite:${join(service.folder, 'portico.db')}` };
  const show = (...args: readonly string[]) =>
    runCommand(['deliveries', ...args], { cwd: service.folder, env });
  const { stdout } = await show('list', '--source', 'portico:schedule', '--json');
  assert.equal(JSON.parse(stdout).items[0].event, 'ticked');
  assert.match((await show('show', `tick@${plannedAt}`)).stdout, /ticked/);
});
