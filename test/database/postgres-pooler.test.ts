import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { DatabaseOpenError } from '../../src/core/errors.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { withoutPostgres } from '../support/databases.ts';
import { startPgBouncer, withoutPgBouncer } from '../support/pgbouncer.ts';
import { startPortico } from '../support/portico-process.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { storeDeliveries } from '../support/stored-deliveries.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const REFUSED =
  /pooler such as PgBouncer in transaction or statement mode .*Use session mode \(pool_mode = session\), or name the server itself/;

describe('PgBouncer before PostgreSQL', { skip: withoutPostgres ?? withoutPgBouncer ?? false }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres();
  });
  after(() => server[Symbol.asyncDispose]());

  /** Makes the pool have backends that nobody uses. */
  async function fill(url: string, backends: number): Promise<void> {
    const clients = Array.from({ length: backends }, () => new pg.Client({ connectionString: url }));
    await Promise.all(clients.map((client) => client.connect()));
    await Promise.all(clients.map((client) => client.query('SELECT pg_sleep(0.2)')));
    await Promise.all(clients.map((client) => client.end()));
  }

  const settings = { server_round_robin: [0, 1], backends: [1, 2, 3, 4] } as const;
  for (const mode of ['transaction', 'statement'] as const) {
    test(`${mode} mode is refused, however many backends are free and however they are given`, async () => {
      for (const server_round_robin of settings.server_round_robin) {
        await using pooler = await startPgBouncer(server.port, mode, { server_round_robin });
        for (const backends of settings.backends) {
          const direct = await server.createDatabase();
          const url = pooler.url(direct);
          await fill(url, backends);
          await assert.rejects(
            async () => openDatabase(url),
            (error: unknown) => {
              assert.ok(error instanceof DatabaseOpenError, String(error));
              assert.equal(error.code, 'DATABASE_OPEN');
              assert.match(error.message, REFUSED, `${backends} backends, ${server_round_robin}`);
              return true;
            },
          );
          const [tables] = await server.sql(
            `SELECT count(*) FROM pg_class WHERE relname = 'migrations'`,
            direct,
          );
          assert.equal(Number(tables?.[0]), 0, 'nothing was made');
        }
      }
    });
  }

  test('a refusal leaves none of our settings to the next client', async () => {
    await using pooler = await startPgBouncer(server.port, 'transaction', { default_pool_size: 1 });
    const url = pooler.url(await server.createDatabase());
    const shown = async () => {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      const names = ['statement_timeout', 'lock_timeout', 'enable_seqscan', 'client_min_messages'];
      const values = names.map((name) => `current_setting('${name}')`).join(', ');
      const { rows } = await client.query(`SELECT ${values}`);
      await client.end();
      return rows;
    };
    const before = await shown();
    await assert.rejects(async () => openDatabase(url), REFUSED);
    assert.deepEqual(await shown(), before);
  });

  test('the program ends with 1 and the advice', async () => {
    await using pooler = await startPgBouncer(server.port, 'transaction');
    await using folder = await temporaryFolder();
    const url = pooler.url(await server.createDatabase());
    await using portico = startPortico({ cwd: folder.path, env: { DATABASE_URL: url } });
    assert.equal(await portico.exited(), 1, portico.stdout);
    assert.match(portico.stderr, REFUSED);
  });

  test('a replica behind transaction mode is refused too, and one that is down is not', async () => {
    const url = await server.createDatabase();
    const open = async (replicaUrl: string) => {
      await using database = await openDatabase(url, { replica: { url: replicaUrl, readYourWrites: 0 } });
      assert.equal(await database.users.lastId(), 0);
    };
    {
      await using pooler = await startPgBouncer(server.port, 'transaction');
      const one = pooler.url(url);
      const several = one.replace(/@([^/]+)/, '@127.0.0.1:1,$1');
      for (const refused of [one, several]) {
        await assert.rejects(open(refused), (error: unknown) => {
          assert.ok(error instanceof DatabaseOpenError, String(error));
          assert.match(error.message, /^The PostgreSQL replica cannot be used: /);
          assert.match(error.message, REFUSED);
          return true;
        });
      }
    }
    await using pooler = await startPgBouncer(server.port, 'session');
    for (const usable of [pooler.url(url), url, 'postgres://portico@127.0.0.1:1/x']) await open(usable);
  });

  test('session mode works', async () => {
    await using pooler = await startPgBouncer(server.port, 'session', { default_pool_size: 50 });
    const url = pooler.url(await server.createDatabase());
    for (let start = 0; start < 2; start++) {
      await using database = await openDatabase(url, { forService: true });
      await database.users.create({ name: 'a', email: 'a@b' });
      await storeDeliveries(database, 'e', 20);
      await database.pingWriter();
      await database.ping();
    }
    await using database = await openDatabase(url);
    assert.equal(await database.users.lastId(), 2);
    assert.equal((await database.inbox.backlog()).open, 40);
  });
});
