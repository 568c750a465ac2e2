import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../../src/sql/database.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { withoutPostgres } from '../support/databases.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { waitFor } from '../support/wait-for.ts';

/** Makes the name of each user that of the server that reads it. */
const TELLING = `
  ALTER TABLE users RENAME TO plain_users;
  CREATE VIEW users AS
    SELECT id, CASE WHEN pg_is_in_recovery() THEN 'replica' ELSE 'primary' END AS name, email, version FROM plain_users;
  CREATE FUNCTION stored() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO plain_users (name, email, version) VALUES (NEW.name, NEW.email, NEW.version) RETURNING id INTO NEW.id;
    RETURN NEW;
  END $$;
  CREATE TRIGGER stored INSTEAD OF INSERT ON users FOR EACH ROW EXECUTE FUNCTION stored()`;

const on = (url: string, { port }: PostgresServer) =>
  url.replace(/127.0.0.1:[0-9,.:]+\//, `127.0.0.1:${port}/`);

async function has(server: PostgresServer, url: string, text: string): Promise<void> {
  await waitFor('the replica to have it', () =>
    server.sql(text, on(url, server)).then(
      (rows) => rows.length > 0,
      () => false,
    ),
  );
}

let emails = 0;

/** Creates a user; again as long as no server takes writes. */
async function created({ users }: Database): Promise<number> {
  return waitFor('a write', () => users.create({ name: 'a', email: `${++emails}@b` }).catch(() => undefined));
}

/** The server that a user is read from; undefined if that does not have it. */
async function readFrom({ users }: Database, id: number): Promise<unknown> {
  const user = await users.readJson(id);
  return user && JSON.parse(user).name;
}

const readsReplica = (database: Database, id: number) =>
  waitFor('the replica to be read', async () => (await readFrom(database, id)) === 'replica');

/** Reads a user for so long that positions are compared several times. */
async function neverFromReplica(database: Database, id: number): Promise<void> {
  for (let i = 0; i < 50; i++) {
    assert.equal(await readFrom(database, id), 'primary', `at read ${i}`);
    await delay(30);
  }
}

describe('reads from a replica by its position', { skip: withoutPostgres ?? false }, () => {
  test('a process reads what it has written from a replica that has it, and however late that is from no other', async () => {
    await using primary = await startPostgres();
    await using replica = await startPostgres({ replicaOf: primary });
    // An owner that may read no statistics of others.
    await primary.sql('CREATE ROLE plain LOGIN');
    const made = await primary.createDatabase();
    await primary.sql(`ALTER DATABASE ${new URL(made).pathname.slice(1)} OWNER TO plain`);
    const url = made.replace('//portico@', '//plain@');
    await (await openDatabase(url))[Symbol.asyncDispose]();
    await primary.sql(TELLING, url);
    await has(replica, url, `SELECT 1 FROM pg_trigger WHERE tgname = 'stored'`);
    await using database = await openDatabase(url, {
      replica: { url: on(url, replica), readYourWrites: 1 },
    });
    await readsReplica(database, await created(database));
    await replica.sql('SELECT pg_wal_replay_pause()');
    const late = await created(database);
    await neverFromReplica(database, late);
    await replica.sql('SELECT pg_wal_replay_resume()');
    await readsReplica(database, late);
  });

  /** A primary, the server that takes over from it, and a replica that then follows that one. */
  async function three() {
    await using cleanup = new AsyncDisposableStack();
    const primary = cleanup.use(await startPostgres());
    const soon = { wal_retrieve_retry_interval: '100ms' };
    const next = cleanup.use(await startPostgres({ replicaOf: primary, settings: soon }));
    const hosts = `host=127.0.0.1,127.0.0.1 port=${primary.port},${next.port}`;
    const settings = { ...soon, primary_conninfo: `${hosts} user=portico` };
    const replica = cleanup.use(await startPostgres({ replicaOf: primary, settings }));
    const url = await primary.createDatabase();
    const both = url.replace(`:${primary.port}/`, `:${primary.port},127.0.0.1:${next.port}/`);
    await (await openDatabase(url))[Symbol.asyncDispose]();
    await primary.sql(TELLING, url);
    for (const each of [next, replica])
      await has(each, url, `SELECT 1 FROM pg_trigger WHERE tgname = 'stored'`);
    const database = cleanup.use(
      await openDatabase(both, { replica: { url: on(url, replica), readYourWrites: 1 } }),
    );
    await readsReplica(database, await created(database));
    const rest = cleanup.move();
    return { primary, next, replica, url, database, [Symbol.asyncDispose]: () => rest.disposeAsync() };
  }

  test('after a fail-over it reads from a replica again that follows the new primary', async () => {
    await using servers = await three();
    const { primary, next, replica, url, database } = servers;
    const before = await created(database);
    for (const each of [next, replica]) await has(each, url, `SELECT 1 FROM users WHERE id = ${before}`);
    await primary.stop('immediate');
    await next.promote();
    const after = await created(database);
    await readsReplica(database, after);
    assert.equal(await readFrom(database, before), 'replica');
  });

  test('after a fail-over it never reads from a replica that is ahead of the new primary', async () => {
    await using servers = await three();
    const { primary, next, replica, url, database } = servers;
    await next.stop('fast');
    await primary.sql('CREATE TABLE lost AS SELECT generate_series(1, 20000) AS i', url);
    await has(replica, url, 'SELECT 1 FROM lost');
    await primary.stop('immediate');
    await next.start();
    await next.promote();
    const after = await created(database);
    const [[isAhead = false] = []] = await replica.sql(
      `SELECT pg_last_wal_replay_lsn() > '${String((await next.sql('SELECT pg_current_wal_insert_lsn()'))[0]?.[0])}'`,
    );
    assert.equal(isAhead, true);
    await neverFromReplica(database, after);
  });
});
