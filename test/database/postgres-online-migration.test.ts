import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { openDatabase } from '../../src/sql/open.ts';
import { withoutPostgres } from '../support/databases.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { waitFor } from '../support/wait-for.ts';

const MIGRATIONS = join(import.meta.dirname, '../../src/sql/postgres/migrations');
const OLD = ['001-users.sql', '002-inbox.sql', '003-targets.sql', '004-delivery-zones.sql', '005-deaths.sql'];
const VALID = `SELECT indisvalid FROM pg_index WHERE indexrelid = 'jobs_ended'::regclass`;

describe('a migration that builds an index on a table of deliveries', {
  skip: withoutPostgres ?? false,
}, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres();
  });
  after(() => server[Symbol.asyncDispose]());

  /** A database before retention, with a client on it that others would wait for. */
  async function old() {
    const url = await server.createDatabase();
    await server.sql('CREATE TABLE migrations (name TEXT PRIMARY KEY, applied_at BIGINT NOT NULL)', url);
    for (const name of OLD) {
      await server.sql(readFileSync(join(MIGRATIONS, name), 'utf8'), url);
      await server.sql(`INSERT INTO migrations VALUES ('${name}', 0)`, url);
    }
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const write = (event: string) =>
      client.query(
        `SET lock_timeout = 2000;
         INSERT INTO deliveries (id, source, event, data_pointer, body, received_at)
         VALUES (gen_random_uuid()::text, '', '${event}', '', '', 0);
         INSERT INTO jobs (delivery, due_at, target) SELECT max(seq), 0, 't' FROM deliveries`,
      );
    return { url, client, write, [Symbol.asyncDispose]: () => client.end() };
  }

  test('writes go on while it is built, and processes that start together wait for it', async () => {
    await using database = await old();
    const { url, client, write } = database;
    await write('before');
    // The index waits for this transaction, and a lock on the table would have all others wait with it.
    await using clients = new AsyncDisposableStack();
    const other = new pg.Client({ connectionString: url });
    clients.defer(() => other.end());
    await other.connect();
    await other.query(`BEGIN; UPDATE jobs SET due_at = 1`);
    const starts = Promise.allSettled([openDatabase(url), openDatabase(url)]);
    clients.defer(async () => {
      await other.query('COMMIT');
      for (const start of await starts) {
        if (start.status === 'fulfilled') await start.value[Symbol.asyncDispose]();
      }
    });
    await waitFor('the index to wait', async () => {
      const [row] = await server.sql(
        `SELECT count(*) FROM pg_stat_activity WHERE query ~ 'CREATE INDEX' AND wait_event_type = 'Lock'
         AND datname = current_database() AND pid <> pg_backend_pid()`,
        url,
      );
      return Number(row?.[0]) > 0;
    });
    await write('meanwhile');
    await other.query('COMMIT');
    assert.deepEqual(
      (await starts).map(({ status }) => status),
      ['fulfilled', 'fulfilled'],
    );
    assert.deepEqual(await server.sql(VALID, url), [[true]]);
    const { rows } = await client.query('SELECT count(*)::int AS count FROM jobs');
    assert.equal(rows[0].count, 2);
  });

  test('what an interrupted build has left is replaced', async () => {
    await using database = await old();
    const { url, client } = database;
    await client.query('CREATE INDEX jobs_ended ON jobs (finished_at)');
    await server.sql(`UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'jobs_ended'::regclass`, url);
    await (await openDatabase(url))[Symbol.asyncDispose]();
    assert.deepEqual(await server.sql(VALID, url), [[true]]);
    const [row] = await server.sql(`SELECT pg_get_indexdef('jobs_ended'::regclass)`, url);
    assert.match(String(row?.[0]), /\(finished_at, seq\) WHERE \(finished_at IS NOT NULL\)$/);
  });
});
