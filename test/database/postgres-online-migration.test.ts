import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { migrateDatabase } from '../../src/sql/open.ts';
import { withoutPostgres } from '../support/databases.ts';
import { type MigrationsFolder, migrationsFolder } from '../support/migrations-folder.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { waitFor } from '../support/wait-for.ts';

const TABLE = 'CREATE TABLE letters (seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, ended_at BIGINT);';
const INDEX = 'CREATE INDEX letters_ended ON letters (ended_at, seq) WHERE ended_at IS NOT NULL;';
const VALID = `SELECT indisvalid FROM pg_index WHERE indexrelid = 'letters_ended'::regclass`;

describe('a migration that builds an index on a table that is in use', {
  skip: withoutPostgres ?? false,
}, () => {
  let server: PostgresServer;
  let folder: MigrationsFolder;
  before(async () => {
    server = await startPostgres();
    folder = await migrationsFolder({ '001-table.sql': TABLE });
  });
  after(async () => {
    await folder[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
  });

  /** A database without the index, with a client on it that others would wait for. */
  async function old() {
    const url = await server.createDatabase();
    folder.remove('002-index.sql');
    await migrateDatabase(url, folder.url);
    folder.write('002-index.sql', INDEX);
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const write = () => client.query(`SET lock_timeout = 2000; INSERT INTO letters DEFAULT VALUES`);
    return { url, client, write, [Symbol.asyncDispose]: () => client.end() };
  }

  test('writes go on while it is built, and processes that start together wait for it', async () => {
    await using database = await old();
    const { url, client, write } = database;
    await write();
    // The index waits for this transaction, and a lock on the table would have all others wait with it.
    await using clients = new AsyncDisposableStack();
    const other = new pg.Client({ connectionString: url });
    clients.defer(() => other.end());
    await other.connect();
    await other.query(`BEGIN; UPDATE letters SET ended_at = 1`);
    const starts = Promise.allSettled([migrateDatabase(url, folder.url), migrateDatabase(url, folder.url)]);
    clients.defer(async () => {
      await other.query('COMMIT');
      await starts;
    });
    await waitFor('the index to wait', async () => {
      const [row] = await server.sql(
        `SELECT count(*) FROM pg_stat_activity WHERE query ~ 'CREATE INDEX' AND wait_event_type = 'Lock'
         AND datname = current_database() AND pid <> pg_backend_pid()`,
        url,
      );
      return Number(row?.[0]) > 0;
    });
    await write();
    await other.query('COMMIT');
    const applied = (await starts).flatMap((start) =>
      start.status === 'fulfilled' ? start.value : start.reason,
    );
    assert.deepEqual(applied, ['002-index.sql']);
    assert.deepEqual(await server.sql(VALID, url), [[true]]);
    const { rows } = await client.query('SELECT count(*)::int AS count FROM letters');
    assert.equal(rows[0].count, 2);
  });

  test('an error behind the index undoes its own migration, and the next start goes on from there', async () => {
    await using database = await old();
    const { url } = database;
    folder.write('002-index.sql', `${INDEX} INSERT INTO letters (ended_at) VALUES ('never');`);
    await assert.rejects(migrateDatabase(url, folder.url), /invalid input syntax/);
    const applied = 'SELECT name FROM migrations ORDER BY name';
    assert.deepEqual(await server.sql(applied, url), [['001-table.sql']]);
    folder.write('002-index.sql', INDEX);
    assert.deepEqual(await migrateDatabase(url, folder.url), ['002-index.sql']);
    assert.deepEqual(await server.sql(VALID, url), [[true]]);
  });

  test('what an interrupted build has left is replaced', async () => {
    await using database = await old();
    const { url, client } = database;
    await client.query('CREATE INDEX letters_ended ON letters (ended_at)');
    await server.sql(
      `UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'letters_ended'::regclass`,
      url,
    );
    assert.deepEqual(await migrateDatabase(url, folder.url), ['002-index.sql']);
    assert.deepEqual(await server.sql(VALID, url), [[true]]);
    const [row] = await server.sql(`SELECT pg_get_indexdef('letters_ended'::regclass)`, url);
    assert.match(String(row?.[0]), /\(ended_at, seq\) WHERE \(ended_at IS NOT NULL\)$/);
  });
});
