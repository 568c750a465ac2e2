import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DatabaseOpenError } from '../../src/core/errors.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { pendingMigrations } from '../../src/sql/postgres/migrate.ts';
import { Connection } from '../../src/sql/postgres-pool/connection.ts';
import { withoutPostgres } from '../support/databases.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';

const TABLES = `SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1`;

describe('opening a PostgreSQL database', { skip: withoutPostgres ?? false }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres({ settings: { max_connections: '60' } });
  });
  after(() => server[Symbol.asyncDispose]());

  const refusal = async (url: string): Promise<DatabaseOpenError> => {
    const error: unknown = await Promise.resolve(openDatabase(url)).then(
      (database) => database[Symbol.asyncDispose](),
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof DatabaseOpenError);
    return error;
  };

  test("one that reads the catalogue while another migrates finds the tables to be Portico's", async () => {
    const url = await server.createDatabase();
    await using connection = await Connection.open(url);
    const { run } = connection;
    // Before the names of the tables are read, another process migrates.
    connection.run = async (statement, values) => {
      if (statement.text.includes('relnamespace')) await (await openDatabase(url))[Symbol.asyncDispose]();
      return run.call(connection, statement, values);
    };
    assert.deepEqual(await pendingMigrations(connection), []);
  });

  test('20 that start together migrate it once, and all of them work', async () => {
    const url = await server.createDatabase();
    {
      await using opened = new AsyncDisposableStack();
      const open = async () => opened.use(await openDatabase(url));
      const starts = await Promise.allSettled(Array.from({ length: 20 }, open));
      assert.deepEqual(
        starts.filter(({ status }) => status === 'rejected'),
        [],
      );
    }
    const migrations = await server.sql('SELECT name FROM migrations ORDER BY name', url);
    assert.deepEqual(migrations.flat(), ['001-schema.sql', '002-endpoint-states.sql', '003-jobs.sql']);
    await using again = await openDatabase(url);
    assert.equal(await again.users.create({ name: 'a', email: 'a@b' }), 1);
  });

  test('one that a newer version has migrated is refused and left as it is', async () => {
    const url = await server.createDatabase();
    await (await openDatabase(url))[Symbol.asyncDispose]();
    await server.sql(`INSERT INTO migrations VALUES ('999-later.sql', 0)`, url);
    const before = await server.sql(TABLES, url);
    assert.match((await refusal(url)).message, /newer version \(999-later\.sql\)/);
    assert.deepEqual(await server.sql(TABLES, url), before);
  });

  test('a migration that fails leaves nothing behind, and nobody waits for it', async () => {
    const url = await server.createDatabase();
    await server.sql(`CREATE TYPE jobs AS ENUM ('other')`, url);
    assert.match((await refusal(url)).message, /"jobs" already exists/);
    assert.deepEqual((await server.sql(TABLES, url)).flat(), []);
    await server.sql('DROP TYPE jobs', url);
    await using database = await openDatabase(url);
    assert.equal(await database.users.lastId(), 0);
  });

  test('what is wrong is said, with what to do, and without the URL', async () => {
    const { port } = server;
    const missing = await refusal(`postgres://portico:s3cret@127.0.0.1:${port}/nowhere`);
    assert.match(missing.message, /"nowhere" does not exist\. Create the database first/);
    const nobody = await refusal(`postgres://portico:s3cret@127.0.0.1:1/x`);
    assert.match(nobody.message, /ECONNREFUSED/);
    const nonsense = await refusal('postgres://portico:s3cret@[/x');
    assert.match(nonsense.message, /Invalid URL/);
    const nameless = await refusal('postgres://portico:s3cret@localhost:1/x');
    assert.match(nameless.message, /ECONNREFUSED/);
    const url = await server.createDatabase();
    await server.sql('CREATE ROLE guest LOGIN', url);
    const guest = await refusal(url.replace('portico@', 'guest@'));
    assert.match(guest.message, /permission denied.*make it the owner/s);
    for (const { message } of [missing, nobody, nonsense, nameless, guest])
      assert.doesNotMatch(message, /s3cret/);
  });

  test('commits wait for the disk even where the server is told not to, and ids stay below 2^53', async () => {
    const url = await server.createDatabase();
    await server.sql(`ALTER ROLE portico SET synchronous_commit = off`, url);
    await using database = await openDatabase(url);
    await database.users.create({ name: 'a', email: 'a@b' });
    await server.sql(
      `CREATE FUNCTION spy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         NEW.name := current_setting('synchronous_commit') || ' ' || current_setting('statement_timeout'); RETURN NEW;
       END $$;
       CREATE TRIGGER spy BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION spy()`,
      url,
    );
    const id = await database.users.create({ name: 'a', email: 'a@b' });
    assert.match((await database.users.readJson(id)) ?? '', /"name":"on 5s"/);
    await server.sql(`ALTER ROLE portico RESET synchronous_commit`, url);
    const limits = await server.sql(
      `SELECT DISTINCT max_value FROM pg_sequences WHERE schemaname = 'public'`,
      url,
    );
    assert.deepEqual(limits.flat(), [String(Number.MAX_SAFE_INTEGER)]);
  });
});
