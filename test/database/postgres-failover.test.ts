import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { DatabaseOpenError, OutcomeUnknownError } from '../../src/core/errors.ts';
import type { Database } from '../../src/sql/database.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { connector } from '../../src/sql/postgres-pool/connector.ts';
import { withoutPostgres } from '../support/databases.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { RunningTime, within } from '../support/running-time.ts';
import { waitFor } from '../support/wait-for.ts';

const USER = { name: 'a', email: 'a@b' };

/** How a write failed that may be stored. */
async function unknownOutcome(write: Promise<unknown>): Promise<OutcomeUnknownError> {
  const error = await write.then(
    () => assert.fail('it was acknowledged'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof OutcomeUnknownError, String(error));
  assert.equal(error.code, 'OUTCOME_UNKNOWN');
  assert.match(error.message, /outcome is unknown/);
  return error;
}

describe('a PostgreSQL server with a replica', { skip: withoutPostgres ?? false }, () => {
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

  /** A URL that names several servers by their ports. */
  const several = (url: string, ...ports: readonly number[]) =>
    url.replace(/127\.0\.0\.1:\d+/, ports.map((port) => `127.0.0.1:${port}`).join());

  const replicaHas = (url: string) =>
    waitFor('the replica to have it', () =>
      replica.sql('SELECT 1 FROM users', several(url, replica.port)).then(
        () => true,
        () => false,
      ),
    );

  describe('that must confirm each commit', () => {
    before(() => primary.waitForReplica(true));
    after(() => primary.waitForReplica(false));

    test('a write that the replica has not confirmed is not acknowledged, whoever ends the wait', async () => {
      await using database = await openDatabase(await primary.createDatabase());
      const { users, inbox } = database;
      const id = await users.create(USER);
      await inbox.append({
        id: 'd',
        source: '',
        event: 'e',
        dataPointer: '',
        contentType: null,
        body: Buffer.from('{}'),
        receivedAt: 0,
        dedupKey: null,
        jobs: [],
      });
      const endWait = async (how: 'pg_cancel_backend' | 'pg_terminate_backend') => {
        await waitFor('the commit to wait', async () => {
          const ended = await primary.sql(
            `SELECT ${how}(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND backend_type = 'client backend'`,
          );
          return ended.length > 0;
        });
      };
      replica.freeze(true);
      try {
        const writes = [
          () => users.create(USER),
          () => users.update(id, USER),
          () => users.remove(id),
          () => database.deliveries.replay('d', [{ target: 't', orderKey: null }], 1),
          () => database.pingWriter() as Promise<void>,
        ];
        for (const write of writes) {
          const [error] = await Promise.all([unknownOutcome(write()), endWait('pg_cancel_backend')]);
          assert.match(error.message, /no replica has confirmed it/);
        }
        const [lost] = await Promise.all([
          unknownOutcome(users.create(USER)),
          endWait('pg_terminate_backend'),
        ]);
        assert.match(lost.message, /did not answer/);
        const began = performance.now();
        await within(15_000, () => unknownOutcome(users.create(USER)));
        const took = performance.now() - began;
        assert.ok(took > 5_500, `nobody ended it, we gave it up after ${took} ms`);
      } finally {
        replica.freeze(false);
      }
      await waitFor('the replica to confirm', () =>
        users.create(USER).then(
          () => true,
          () => false,
        ),
      );
    });
  });

  test('of several servers the one is used that takes writes, wherever it stands', async () => {
    const url = await primary.createDatabase();
    // 1 is a port where nobody listens.
    const orders = [
      [primary.port, replica.port],
      [1, primary.port],
      [replica.port, 1, primary.port],
    ];
    await (await openDatabase(url))[Symbol.asyncDispose]();
    await replicaHas(url);
    for (const [i, ports] of orders.entries()) {
      await using database = await openDatabase(several(url, ...ports));
      assert.equal(await database.users.create(USER), i + 1);
    }
    const refusals = [
      [several(url, replica.port, replica.port), /all servers are replicas that cannot be written to/],
      [several(url, replica.port, 1), /none of 2 servers accepts writes: .*ECONNREFUSED/],
    ] as const;
    for (const [wrong, message] of refusals) {
      await assert.rejects(
        async () => openDatabase(wrong),
        (error) => error instanceof DatabaseOpenError && message.test(error.message),
      );
    }
  });

  test('the server that was found is asked first, however many connections look for it together', async () => {
    let asked = 0;
    const refusing = createServer((socket) => {
      asked++;
      socket.destroy();
    }).listen(0, '127.0.0.1');
    await once(refusing, 'listening');
    const { port } = refusing.address() as AddressInfo;
    const connect = connector(several(await primary.createDatabase(), port, primary.port));
    const end = async (connection: AsyncDisposable) => connection[Symbol.asyncDispose]();
    try {
      for (const connection of await Promise.all([connect(), connect()])) await end(connection);
      assert.equal(asked, 2);
      await end(await connect());
      assert.equal(asked, 2);
    } finally {
      refusing.close();
    }
  });

  test('a server that is silent is not waited for', async () => {
    const url = await primary.createDatabase();
    await (await openDatabase(url))[Symbol.asyncDispose]();
    replica.freeze(true);
    try {
      using time = new RunningTime();
      await using database = await openDatabase(several(url, replica.port, primary.port));
      assert.equal(await database.users.create(USER), 1);
      const took = time.elapsed;
      assert.ok(took < 1_900, `a connection that opens is waited for two seconds, this took ${took} ms`);
    } finally {
      replica.freeze(false);
    }
  });

  test('users are read from the first replica that answers', async () => {
    const url = await primary.createDatabase();
    const readUrl = several(url, 1, replica.port);
    await using database: Database = await openDatabase(url, {
      replica: { url: readUrl, readYourWrites: 0 },
    });
    await replicaHas(url);
    await replica.sql('SELECT pg_wal_replay_pause()');
    const id = await database.users.create(USER);
    assert.equal(await database.users.readJson(id), undefined);
    await replica.sql('SELECT pg_wal_replay_resume()');
    await waitFor('the replica to have it', async () => (await database.users.readJson(id)) !== undefined);
  });

  test('when the replica takes over, the process goes on there', async () => {
    const url = await primary.createDatabase();
    await using database = await openDatabase(several(url, primary.port, replica.port));
    const users = await database.userFeed.subscribe('created');
    assert.equal(await database.users.create(USER), 1);
    assert.equal((await users.next())?.value.id, '1');
    await replicaHas(url);
    await primary.stop('immediate');
    await replica.promote();
    const id = await within(4_000, () =>
      waitFor('a write', () => database.users.create(USER).catch(() => undefined)),
    );
    assert.equal((await users.next())?.value.id, String(id));
    assert.equal(await database.users.readJson(1), '{"id":1,"name":"a","email":"a@b"}');
    await users?.return?.();
  });
});
