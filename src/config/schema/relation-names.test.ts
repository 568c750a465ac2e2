import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import pg from 'pg';
import { postgresUrl, withoutPostgres } from '../../../test/support/databases.ts';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { migrateDatabase } from '../../sql/open.ts';
import { PORTICO_TABLES } from './relation-names.ts';

test('the tables of Portico on SQLite are reserved', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'portico.db');
  await migrateDatabase(`sqlite:${file}`);
  using db = new DatabaseSync(file);
  const rows = db
    .prepare(
      `SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite~_%' ESCAPE '~'`,
    )
    .all();
  const names = rows.map(({ name }) => String(name)).sort();
  assert.deepEqual(names, [...PORTICO_TABLES]);
});

test('the tables of Portico on PostgreSQL are reserved', { skip: withoutPostgres ?? false }, async () => {
  const url = await postgresUrl();
  await migrateDatabase(url);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ name: string }>(
      `SELECT relname AS name FROM pg_class WHERE relnamespace = current_schema::regnamespace AND relkind IN ('r', 'p', 'v', 'm')`,
    );
    assert.deepEqual(
      rows.map(({ name }) => name).filter((name) => !PORTICO_TABLES.includes(name)),
      [],
    );
  } finally {
    await client.end();
  }
});
