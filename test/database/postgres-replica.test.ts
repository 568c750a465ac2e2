import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { USER_FIELDS, type UserPageRequest } from '../../src/relations/lists.ts';
import type { Database } from '../../src/sql/database.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { withoutPostgres } from '../support/databases.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { waitFor } from '../support/wait-for.ts';

const USER = { name: 'a', email: 'a@b' };
/** A list that no index finds. */
const SEARCH: UserPageRequest = {
  filters: [{ field: 'name', match: 'contains', text: 'replica' }],
  order: [{ field: 'id', descending: false }],
  fields: USER_FIELDS,
  limit: 10,
  next: undefined,
  backwards: false,
};

describe('users read from a replica of PostgreSQL', { skip: withoutPostgres ?? false }, () => {
  let primary: PostgresServer;
  let replica: PostgresServer;
  before(async () => {
    primary = await startPostgres();
    replica = await startPostgres({ replicaOf: primary });
  });
  after(async () => {
    await replica?.[Symbol.asyncDispose]();
    await primary[Symbol.asyncDispose]();
  });

  /** Leaves the replica behind, or lets it catch up. */
  async function behind(isBehind: boolean): Promise<void> {
    await replica.sql(isBehind ? 'SELECT pg_wal_replay_pause()' : 'SELECT pg_wal_replay_resume()');
    await waitFor('the replica to obey', async () => {
      const [row] = await replica.sql('SELECT pg_get_wal_replay_pause_state()');
      return row?.[0] === (isBehind ? 'paused' : 'not paused');
    });
  }

  /** A process that writes, and one that only reads, on a database that the replica has. */
  async function pair(readYourWrites: number) {
    await using cleanup = new AsyncDisposableStack();
    const url = await primary.createDatabase();
    const readUrl = url.replace(`:${primary.port}/`, `:${replica.port}/`);
    const open = async (): Promise<Database> =>
      cleanup.use(await openDatabase(url, { replica: { url: readUrl, readYourWrites } }));
    const writes = await open();
    const reads = await open();
    await waitFor('the replica to have the tables', () =>
      replica.sql('SELECT id FROM users', readUrl).then(
        () => true,
        () => false,
      ),
    );
    const rest = cleanup.move();
    return { writes, reads, url, readUrl, [Symbol.asyncDispose]: () => rest.disposeAsync() };
  }

  test('a process sees its own writes at once, that of others when the replica has them', async () => {
    await using both = await pair(600_000);
    const { writes, reads } = both;
    await behind(true);
    const id = await writes.users.create(USER);
    assert.ok(await writes.users.readJson(id));
    assert.equal(await writes.users.lastId(), id);
    assert.equal(await reads.users.readJson(id), undefined, 'this one reads from the replica');
    await behind(false);
    await waitFor('the replica to have it', async () => (await reads.users.page('json', 0, 10)).count === 1);
    assert.ok(await reads.users.readJson(id));
    await behind(true);
    assert.equal(await writes.users.remove(id), true);
    assert.equal(await writes.users.readJson(id), undefined);
    assert.ok(await reads.users.readJson(id));
    await behind(false);
  });

  test('when that is not asked for it reads from the replica even then', async () => {
    await using both = await pair(0);
    await behind(true);
    const id = await both.writes.users.create(USER);
    assert.equal(await both.writes.users.readJson(id), undefined);
    await behind(false);
    await waitFor('the replica to have it', async () => (await both.writes.users.readJson(id)) !== undefined);
  });

  test('without its replica it reads from the database, and from the replica again when that is back', async () => {
    await using both = await pair(0);
    const { users } = both.writes;
    const first = await users.create(USER);
    await replica.stop('immediate');
    assert.ok(await users.readJson(first));
    const second = await users.create(USER);
    assert.equal((await users.page('json', 0, 10)).count, 2);
    await replica.start();
    const found = () => replica.sql(`SELECT id FROM users WHERE id = ${second}`, both.readUrl);
    await waitFor('the replica to catch up', () =>
      found().then(
        (rows) => rows.length === 1,
        () => false,
      ),
    );
    await behind(true);
    const third = await users.create(USER);
    const answered = both.writes.replicaReads?.() ?? Number.NaN;
    await waitFor('the replica to be read again', async () => (await users.readJson(third)) === undefined);
    assert.ok((both.writes.replicaReads?.() ?? Number.NaN) > answered, 'the replica answered it');
    await behind(false);
    await waitFor('the replica to have it', async () => (await users.readJson(third)) !== undefined);
    assert.ok(third > second);
  });

  test('a long read from the replica does not hold up short ones', async () => {
    await using both = await pair(0);
    const { users } = both.reads;
    await both.writes.users.create(USER);
    await both.writes.users.create(USER);
    // A read of the second user waits for a lock; each name tells which server was asked.
    await primary.sql(
      `CREATE FUNCTION held() RETURNS text LANGUAGE sql SET lock_timeout = 0
         AS 'SELECT pg_advisory_xact_lock_shared(1)::text';
       ALTER TABLE users RENAME TO plain_users;
       CREATE VIEW users AS
         SELECT id, CASE id WHEN 2 THEN held() ELSE '' END ||
           CASE WHEN pg_is_in_recovery() THEN 'replica' ELSE 'primary' END AS name, email, version
         FROM plain_users`,
      both.url,
    );
    await waitFor('the replica to have it', async () =>
      (await users.readJson(1))?.includes('"name":"replica"'),
    );
    const hand = new pg.Client({ connectionString: both.readUrl });
    await hand.connect();
    try {
      await hand.query('SELECT pg_advisory_lock(1)');
      const long = Promise.resolve(users.lists.page(SEARCH));
      await waitFor('the long read to be held', async () => {
        const [row] = await replica.sql('SELECT count(*)::int FROM pg_locks WHERE NOT granted');
        return row?.[0] === 1;
      });
      assert.match((await users.readJson(1)) ?? '', /"name":"replica"/);
      await hand.query('SELECT pg_advisory_unlock(1)');
      // Had the short one waited for the server to end the long one, the primary would have been asked for that.
      assert.equal(String((await long).json).match(/"name":"replica"/g)?.length, 2);
    } finally {
      await hand.end();
    }
  });

  test('the replica itself is no database to write to', async () => {
    const url = await primary.createDatabase();
    const readUrl = url.replace(`:${primary.port}/`, `:${replica.port}/`);
    await waitFor('the replica to have it', () =>
      replica.sql('SELECT 1', readUrl).then(
        () => true,
        () => false,
      ),
    );
    await assert.rejects(async () => openDatabase(readUrl), /replica that cannot be written to/);
  });

  test('reads leave a replica that has become a primary for one that is a replica still', async () => {
    await using other = await startPostgres({ replicaOf: primary });
    const url = await primary.createDatabase();
    const readUrl = url.replace(
      `127.0.0.1:${primary.port}`,
      `127.0.0.1:${other.port},127.0.0.1:${replica.port}`,
    );
    await using database = await openDatabase(url, { replica: { url: readUrl, readYourWrites: 0 } });
    const on = (port: number) => url.replace(`:${primary.port}/`, `:${port}/`);
    for (const server of [other, replica]) {
      await waitFor('the replica to have the tables', () =>
        server.sql('SELECT id FROM users', on(server.port)).then(
          () => true,
          () => false,
        ),
      );
    }
    // Only the first one answers.
    replica.freeze(true);
    try {
      assert.equal(await database.users.readJson(1), undefined);
    } finally {
      replica.freeze(false);
    }
    await other.promote();
    await other.sql(`INSERT INTO users (name, email) VALUES ('a', 'only here')`, on(other.port));
    await waitFor('the reads to leave it', async () => (await database.users.readJson(1)) === undefined);
    // New connections go to the replica at once, although the other server stands before it.
    await using again = await openDatabase(url, { replica: { url: readUrl, readYourWrites: 0 } });
    assert.equal(await again.users.readJson(1), undefined);
  });
});
