import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openDatabase } from '../../src/database/open-database.ts';
import { postgresUrl, withoutPostgres } from '../support/databases.ts';
import { runPortico } from '../support/portico-command.ts';
import { startPortico } from '../support/portico-process.ts';
import { settleAll, storeDeliveries } from '../support/stored-deliveries.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

test('the same commands on PostgreSQL', { skip: withoutPostgres ?? false }, async () => {
  await using folder = await temporaryFolder();
  const url = await postgresUrl();
  const options = { cwd: folder.path, env: { DATABASE_URL: url } };
  const portico = (...args: readonly string[]) => runPortico(['deliveries', ...args], options);
  await using database = await openDatabase(url);
  const dead = await storeDeliveries(database, 'new_commit', 300);
  await settleAll(database, 'new_commit', 'dead');

  const list = JSON.parse((await portico('list', '--json', '--limit', '1000')).stdout);
  assert.deepEqual(
    list.items.map(({ id, status }: Record<string, string>) => [id, status]),
    dead.toReversed().map((id) => [id, 'dead']),
  );
  await using tail = startPortico({ ...options, args: ['deliveries', 'tail', '--json'] });
  await waitFor('tail to begin', () => tail.stderr.includes('Waiting for deliveries'), 20_000);
  const [first = '', ...rest] = await storeDeliveries(database, 'late', 200);
  await waitFor('all new ones', () => tail.logs().length === 200, 20_000);
  assert.deepEqual(
    tail
      .logs()
      .map(({ id }) => id)
      .toSorted(),
    [first, ...rest].toSorted(),
  );

  assert.equal((await portico('replay', '--dead', '--json')).code, 0);
  const [one = ''] = dead;
  assert.match((await portico('show', one)).stdout, /^Status {4}pending$/m);
  assert.equal((await portico('discard', one)).stdout, '1 delivery discarded.\n');
  const open = JSON.parse(
    (await portico('list', '--status', 'pending', '--event', 'new_commit', '--json', '--limit', '1000'))
      .stdout,
  );
  assert.equal(open.items.length, 299);
});
