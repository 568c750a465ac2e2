import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { openDatabase } from '../../src/sql/open.ts';
import { postgresUrl, withoutPostgres } from '../support/databases.ts';
import { startPortico } from '../support/portico-process.ts';
import { runCommand } from '../support/run-command.ts';
import { settleAll, storeDeliveries } from '../support/stored-deliveries.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

test('the same commands on PostgreSQL', { skip: withoutPostgres ?? false }, async () => {
  await using folder = await temporaryFolder();
  const url = await postgresUrl();
  const options = { cwd: folder.path, env: { DATABASE_URL: url } };
  const portico = (...args: readonly string[]) => runCommand(['deliveries', ...args], options);
  await using database = await openDatabase(url);
  const dead = await storeDeliveries(database, 'new_commit', 300);
  await settleAll(database, 'new_commit', 'dead');

  const list = JSON.parse((await portico('list', '--json', '--limit', '1000')).stdout);
  assert.deepEqual(
    list.items.map(({ id, status }: Record<string, string>) => [id, status]),
    dead.toReversed().map((id) => [id, 'dead']),
  );
  await using tail = startPortico({ ...options, args: ['deliveries', 'tail', '--json'] });
  await waitFor('tail to begin', () => tail.stderr.includes('Waiting for deliveries'));
  const [first = '', ...rest] = await storeDeliveries(database, 'late', 200);
  await waitFor('all new ones', () => tail.logs().length === 200);
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
  await storeDeliveries(database, 'named', 1, { id: 'ffff-1', dedupKey: 'order-7' });
  for (const name of ['ffff', 'order-7'])
    assert.match((await portico('show', name)).stdout, /^Delivery {2}ffff-1$/m);
  assert.equal((await portico('discard', one)).stdout, '1 delivery discarded.\n');
  const open = JSON.parse(
    (await portico('list', '--status', 'pending', '--event', 'new_commit', '--json', '--limit', '1000'))
      .stdout,
  );
  assert.equal(open.items.length, 299);
});

test('tail passes over nothing that is committed late, and waits for who is in its way', {
  skip: withoutPostgres ?? false,
}, async () => {
  await using folder = await temporaryFolder();
  const url = await postgresUrl();
  await using database = await openDatabase(url);
  const hand = new pg.Client({ connectionString: url });
  const watch = new pg.Client({ connectionString: url });
  await Promise.all([hand.connect(), watch.connect()]);
  try {
    const store = (id: string) =>
      hand.query(
        `INSERT INTO deliveries (id, source, data_pointer, body, received_at) VALUES ('${id}', '', '', '', 0)`,
      );
    const looks = async () => {
      const text = `SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_locks%' AND pid <> pg_backend_pid()
        AND datname = current_database()`;
      return ((await watch.query(text)).rowCount ?? 0) > 0;
    };
    await hand.query('BEGIN');
    await store('under way when it began');
    await storeDeliveries(database, 'before', 1);
    await using tail = startPortico({
      cwd: folder.path,
      env: { DATABASE_URL: url },
      args: ['deliveries', 'tail', '--json'],
    });
    const begun = () => tail.stderr.includes('Waiting for deliveries');
    await waitFor('tail to look', async () => begun() || (await looks()));
    assert.ok(!begun(), 'what is being stored may come below the newest one');
    await hand.query('COMMIT');
    await waitFor('tail to begin', begun);

    await hand.query('BEGIN');
    await store('late');
    const [other = ''] = await storeDeliveries(database, 'early', 1);
    await waitFor('tail to say what it waits for', () => tail.stderr.includes('has been open for 6 s'));
    assert.deepEqual(tail.logs(), []);
    await hand.query('COMMIT');
    await waitFor('both', () => tail.logs().length === 2);
    assert.deepEqual(
      tail.logs().map(({ id }) => id),
      ['late', other],
    );
    tail.child.kill('SIGINT');
    assert.equal(await tail.exited(), 0);
  } finally {
    await Promise.all([hand.end(), watch.end()]);
  }
});
