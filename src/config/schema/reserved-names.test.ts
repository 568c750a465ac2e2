import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import pg from 'pg';
import { postgresUrl, withoutPostgres } from '../../../test/support/databases.ts';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { migrateDatabase } from '../../sql/open.ts';
import { isReserved } from './reserved-names.ts';

test('the tables and indexes of Portico on SQLite are reserved', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'portico.db');
  await migrateDatabase(`sqlite:${file}`);
  using db = new DatabaseSync(file);
  const rows = db.prepare(`SELECT name FROM sqlite_schema WHERE type <> 'trigger'`).all();
  const names = rows.map(({ name }) => String(name));
  assert.ok(names.includes('jobs_due'));
  assert.deepEqual(
    names.filter((name) => !isReserved(name)),
    [],
  );
});

test('the tables, indexes and sequences of Portico on PostgreSQL are reserved', {
  skip: withoutPostgres ?? false,
}, async () => {
  const url = await postgresUrl();
  await migrateDatabase(url);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ name: string }>(
      `SELECT relname AS name FROM pg_class WHERE relnamespace = current_schema::regnamespace AND relkind <> 't'`,
    );
    assert.deepEqual(
      rows.map(({ name }) => name).filter((name) => !isReserved(name)),
      [],
    );
  } finally {
    await client.end();
  }
});
