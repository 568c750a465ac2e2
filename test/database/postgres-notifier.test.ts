import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Notifier } from '../../src/sql/postgres/notifier.ts';
import { Connection } from '../../src/sql/postgres-pool/connection.ts';
import { withoutPostgres } from '../support/databases.ts';
import { startPostgres } from '../support/postgres.ts';
import { waitFor } from '../support/wait-for.ts';

test('a server on which nobody can listen is not filled with connections', {
  skip: withoutPostgres ?? false,
}, async () => {
  await using server = await startPostgres();
  const url = await server.createDatabase();
  let opened = 0;
  await using notifier = new Notifier(async () => {
    const connection = await Connection.open(url);
    // After an error in a transaction the server refuses whatever comes.
    await assert.rejects(connection.run({ text: 'BEGIN; SELECT 1 / 0' }, undefined));
    opened++;
    return connection;
  });
  await notifier.open();
  await waitFor('it to try again', () => opened > 2);
  const others =
    'SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()';
  await waitFor('those that failed to be closed', async () => {
    const [row] = await server.sql(others, url);
    return Number(row?.[0]) <= 1;
  });
});
