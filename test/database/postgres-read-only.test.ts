import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { migrateDatabase, openDatabase, writerCheck } from '../../src/sql/open.ts';
import { HealthRegistry } from '../../src/telemetry/health.ts';
import { withoutPostgres } from '../support/databases.ts';
import { startPortico } from '../support/portico-process.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const USER = { name: 'a', email: 'a@b' };

describe('PostgreSQL that takes no writes', { skip: withoutPostgres ?? false }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres();
  });
  after(() => server[Symbol.asyncDispose]());

  /** What a start on a database says, which is refused. */
  async function refusal(url: string): Promise<string> {
    await using folder = await temporaryFolder();
    await using portico = startPortico({ cwd: folder.path, env: { DATABASE_URL: url } });
    assert.equal(await portico.exited(), 1, portico.stdout);
    const begin = 'portico: The PostgreSQL database cannot be opened: ';
    assert.ok(portico.stderr.startsWith(begin), portico.stderr);
    return portico.stderr.slice(begin.length).trimEnd();
  }

  /** Makes the whole server read-only, or no longer. */
  async function readOnly(on: boolean, database: string): Promise<void> {
    const url = `${database}?options=-c%20default_transaction_read_only=off`;
    await server.sql(`ALTER SYSTEM SET default_transaction_read_only = ${on ? 'on' : 'off'}`, url);
    await server.sql('SELECT pg_reload_conf()', url);
    await waitFor('the server to have read its settings', async () => {
      const [row] = await server.sql('SHOW default_transaction_read_only');
      return row?.[0] === (on ? 'on' : 'off');
    });
  }

  test('the check of the writer notices it, and that it takes writes again', async () => {
    const url = await server.createDatabase();
    await using database = await openDatabase(url);
    const health = new HealthRegistry([writerCheck(database)]);
    assert.equal((await health.check()).status, 'UP');
    try {
      await readOnly(true, url);
      await waitFor('a create to be refused', () =>
        database.users.create(USER).then(
          () => false,
          () => true,
        ),
      );
      const { status, components } = await health.check();
      assert.equal(status, 'DOWN');
      assert.match(JSON.stringify(components), /read-only transaction/);
    } finally {
      await readOnly(false, url);
    }
    await waitFor('the writer to be UP', async () => (await health.check()).status === 'UP');
    await database.users.create(USER);
  });

  test('a start is refused: a database of the server, a user without rights, a replica', async () => {
    const url = await server.createDatabase();
    await migrateDatabase(url);
    const name = new URL(url).pathname.slice(1);
    await server.sql(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
    assert.equal(
      await refusal(url),
      'cannot execute INSERT in a read-only transaction. Name the primary in the URL, or turn default_transaction_read_only off.',
    );

    const other = await server.createDatabase();
    await migrateDatabase(other);
    await server.sql(
      'CREATE ROLE reader LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader',
      other,
    );
    const asReader = new URL(other);
    asReader.username = 'reader';
    assert.match(await refusal(asReader.href), /^permission denied for table users\. .*make it the owner/);

    await using replica = await startPostgres({ replicaOf: server });
    assert.equal(
      await refusal(other.replace(`:${server.port}/`, `:${replica.port}/`)),
      'the server is a replica that cannot be written to. Name the primary in the URL.',
    );
  });
});
