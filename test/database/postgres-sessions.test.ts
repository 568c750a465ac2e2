import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Connection } from '../../src/sql/postgres-pool/connection.ts';
import { Server } from '../../src/sql/postgres-pool/server.ts';
import { postgresUrl, withoutPostgres } from '../support/databases.ts';

const insert = { text: 'INSERT INTO kept (n) VALUES ($1)' };

test('no other write comes between the statements of a transaction that waits for results', {
  skip: withoutPostgres ?? false,
}, async () => {
  const url = await postgresUrl();
  await using server = new Server(() => Connection.open(url), { shared: 1, alone: 1 }, 10_000);
  await server.write({ text: 'CREATE TABLE kept (n integer)' }, []);
  const others = () =>
    Promise.all(Array.from({ length: 20 }, (_, n) => server.transaction([[insert, [100 + n]]])));
  const undone = server.session(async (run) => {
    for (let n = 0; n < 20; n++) await run(insert, [n]);
    return false;
  });
  await Promise.all([undone, others()]);
  const failed = server.transaction([[insert, [50]]], () => [[{ text: 'SELECT 1 / 0' }, []]]);
  await Promise.all([assert.rejects(failed, /division by zero/), others()]);
  const rows = await server.read({ text: 'SELECT n FROM kept ORDER BY n' }, []);
  assert.deepEqual(
    rows.filter(([n]) => Number(n) < 100),
    [],
  );
  assert.equal(rows.length, 40);
});
