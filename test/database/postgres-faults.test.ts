import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { StoreUnavailableError } from '../../src/core/errors.ts';
import type { Database } from '../../src/sql/database.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { withoutPostgres } from '../support/databases.ts';
import { newDelivery } from '../support/new-delivery.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { RunningTime, within } from '../support/running-time.ts';
import { waitFor } from '../support/wait-for.ts';

/** How long a call may take that has no connection: a second, and what a busy machine adds. */
const SOON = 2_500;
const USER = { name: 'a', email: 'a@b' };

/** How a call failed, and after how many milliseconds in which this process ran. */
async function failure(call: () => unknown): Promise<{ error: StoreUnavailableError; took: number }> {
  using time = new RunningTime();
  try {
    await call();
  } catch (error) {
    assert.ok(error instanceof StoreUnavailableError, String(error));
    return { error, took: time.elapsed };
  }
  return assert.fail('the call came through');
}

/** How a call failed, which it does within so many milliseconds. */
async function failsWithin(limit: number, call: () => unknown): Promise<StoreUnavailableError> {
  const { error, took } = await failure(call);
  assert.ok(took < limit, `it took ${took} ms: ${error.message}`);
  return error;
}

const delivery = (id = randomUUIDv7()) => newDelivery({ id, receivedAt: Date.now(), jobs: [] });

/** Everything that a door calls. */
const calls = ({ users, inbox, ping, pingWriter }: Database) => ({
  read: () => users.readJson(1),
  page: () => users.page('json', 0, 10),
  create: () => users.create(USER),
  update: () => users.update(1, USER),
  remove: () => users.remove(1),
  append: () => inbox.append(delivery()),
  claim: () => inbox.claim('t', 1, 'me', 1, { now: 0 }),
  backlog: () => inbox.backlog(),
  ping,
  pingWriter,
});

describe('faults of PostgreSQL', { skip: withoutPostgres ?? false }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres();
  });
  after(() => server[Symbol.asyncDispose]());

  async function opened() {
    await using cleanup = new AsyncDisposableStack();
    const url = await server.createDatabase();
    const database = cleanup.use(await openDatabase(url, { forService: true }));
    const hand = new pg.Client({ connectionString: url });
    hand.on('error', () => {});
    await hand.connect();
    cleanup.defer(() => hand.end());
    const rest = cleanup.move();
    return { url, database, hand, [Symbol.asyncDispose]: () => rest.disposeAsync() };
  }

  test('writes that find no connection free fail within a second or so, and come through afterwards', async () => {
    await using open = await opened();
    const { database, hand } = open;
    await hand.query('BEGIN; LOCK TABLE jobs, deliveries');
    const many = Array.from({ length: 40 }, () =>
      failsWithin(SOON, () => database.inbox.claim('t', 1, 'me', 1, { now: 0 })),
    );
    await new Promise((resolve) => setTimeout(resolve, 50));
    const queued = Array.from({ length: 40 }, () =>
      failsWithin(SOON, () => database.inbox.append(delivery())),
    );
    const messages = (await Promise.all([...many, ...queued])).map(({ message }) => message);
    assert.ok(
      messages.some((message) => /busy for 500 ms/.test(message)),
      'the pool was exhausted',
    );
    assert.ok(
      messages.some((message) => /lock timeout/.test(message)),
      'nobody waits for a lock for ever',
    );
    assert.ok(messages.every((message) => !/unknown/.test(message)));
    assert.equal(await database.users.readJson(1), undefined, 'reads go on');
    await hand.query('ROLLBACK');
    assert.deepEqual(await database.inbox.claim('t', 1, 'me', 1, { now: 0 }), []);
    assert.equal(await database.inbox.append(delivery()), 'stored');
    assert.equal((await database.deliveries.list({}, 100)).items.length, 1, 'what failed was not stored');
  });

  test('a server that is gone fails every call soon, and at once after a while; back, it is found without being asked', async () => {
    await using open = await opened();
    const { database } = open;
    await database.users.create(USER);
    await server.stop('fast');
    await Promise.all(Object.values(calls(database)).map((call) => failsWithin(SOON, call)));
    await Promise.all(
      Object.values(calls(database)).map(async (call) => {
        const error = await failsWithin(700, call);
        assert.match(error.message, /cannot be reached: .*ECONNREFUSED/);
      }),
    );
    assert.equal(database.failed.aborted, false);
    await server.start();
    await waitFor('the database', () =>
      Promise.resolve(database.ping()).then(
        () => true,
        () => false,
      ),
    );
    assert.equal(await database.users.readJson(1), '{"id":1,"name":"a","email":"a@b"}');
    assert.equal(await database.users.create(USER), 2);
  });

  test('a read is asked again when its connection is lost, a write is not', async () => {
    await using open = await opened();
    const { database, hand } = open;
    await database.users.create(USER);
    const kill = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid() AND wait_event_type = 'Lock'`;
    const blocked = async (count: number) => {
      await waitFor('the statement to wait', async () => {
        const { rows } = await hand.query('SELECT count(*)::int AS n FROM pg_locks WHERE NOT granted');
        return rows[0].n === count;
      });
    };
    await hand.query('BEGIN; LOCK TABLE users');
    const read = database.users.readJson(1);
    await blocked(1);
    await server.sql(kill, open.url);
    await blocked(1);
    await hand.query('ROLLBACK');
    assert.match((await read) ?? '', /"id":1/);

    await hand.query('BEGIN; LOCK TABLE users');
    const create = failure(() => database.users.create(USER));
    await blocked(1);
    await server.sql(kill, open.url);
    assert.match((await create).error.message, /outcome is unknown/);
    await hand.query('ROLLBACK');
    assert.equal(await database.users.create(USER), 2);
  });

  test('a server that stands still fails every call, and everything works once it goes on', async () => {
    await using open = await opened();
    const { database } = open;
    await database.users.create(USER);
    await Promise.all(Object.values(calls(database)).map((call) => call()));
    server.freeze(true);
    try {
      const sent = failure(() => database.users.create(USER));
      const reads = [calls(database).read, calls(database).page, calls(database).ping];
      await Promise.all(reads.map((call) => failsWithin(2 * SOON, call)));
      await new Promise((resolve) => setTimeout(resolve, 100));
      // Behind it others wait, but not for it.
      const waiting = Array.from({ length: 100 }, () => failure(() => database.users.create(USER)));
      const results = await Promise.all([sent, ...waiting]);
      assert.ok(results.every(({ took }) => took < 15_000));
      const unknown = results.filter(({ error }) => /outcome is unknown/.test(error.message));
      const refused = results.filter(({ error }) =>
        /waited longer|cannot be reached|busy/.test(error.message),
      );
      assert.equal(unknown.length + refused.length, results.length);
      const waits = refused.map(({ took }) => took).toSorted((x, y) => x - y);
      assert.ok((waits[waits.length >> 1] ?? 0) < 2 * SOON, `they waited ${waits.join(', ')} ms`);
      await failsWithin(SOON, calls(database).read);
    } finally {
      server.freeze(false);
    }
    await waitFor('the database', () =>
      Promise.resolve(database.ping()).then(
        () => true,
        () => false,
      ),
    );
    await waitFor('a write', () =>
      database.users.create(USER).then(
        () => true,
        () => false,
      ),
    );
  });

  test('a write whose answer is lost says so, and is there once', async () => {
    await using open = await opened();
    // A wire that is cut after the server has got the statement, before its answer comes through.
    const target = Number(new URL(open.url).port);
    let cut = false;
    const sockets = new Set<Socket>();
    const wire = createServer((client) => {
      const upstream = connect(target, '127.0.0.1');
      sockets.add(client).add(upstream);
      for (const socket of [client, upstream]) socket.on('error', () => {});
      client.pipe(upstream);
      upstream.on('data', (chunk) => {
        if (cut) for (const socket of [client, upstream]) socket.destroy();
        else client.write(chunk);
      });
      client.on('close', () => upstream.destroy());
      upstream.on('close', () => client.destroy());
    }).listen(0, '127.0.0.1');
    using cleanup = new DisposableStack();
    cleanup.defer(() => {
      wire.close();
      for (const socket of sockets) socket.destroy();
    });
    await once(wire, 'listening');
    const { port } = wire.address() as { readonly port: number };
    const url = open.url.replace(`:${target}/`, `:${port}/`);
    await using database = await openDatabase(url, { forService: true });
    await database.users.create(USER);
    cut = true;
    const { error } = await failure(() => database.users.create(USER));
    assert.match(error.message, /outcome is unknown/);
    cut = false;
    assert.equal(await database.users.lastId(), 2, 'it was stored, and not twice');
    assert.equal(await database.users.create(USER), 3);

    await database.inbox.append({ ...delivery(), jobs: [{ target: 't', orderKey: null }] });
    const now = Date.now();
    const [job] = await database.inbox.claim('t', 1, 'me', 60_000, { now });
    assert.ok(job);
    cut = true;
    const settled = database.inbox.settle(job, 'me', { kind: 'done' }, Date.now());
    await new Promise((resolve) => setTimeout(resolve, 50));
    cut = false;
    assert.equal(await settled, true, 'the end of an attempt is asked for until it is known');
  });

  test('a bad value fails alone', async () => {
    await using open = await opened();
    const { users } = open.database;
    const results = await Promise.allSettled(
      Array.from({ length: 20 }, (_, i) => users.create({ name: i === 7 ? 'a\0' : `n${i}`, email: 'a@b' })),
    );
    assert.deepEqual(
      results.flatMap(({ status }, i) => (status === 'rejected' ? [i] : [])),
      [7],
    );
    assert.equal((await users.page('json', 0, 100)).count, 19);
  });

  test('a closed database answers nothing, and a silent server does not keep it from closing', async () => {
    await using open = await opened();
    const { database, url } = open;
    const create = database.users.create(USER);
    await database[Symbol.asyncDispose]();
    assert.equal(await create, 1, 'what was accepted is stored');
    for (const call of Object.values(calls(database))) await failsWithin(700, call);
    const other = await openDatabase(url, { forService: true });
    server.freeze(true);
    try {
      // It is not waited for until a statement times out.
      await within(2 * SOON, () => other[Symbol.asyncDispose]());
    } finally {
      server.freeze(false);
    }
  });
});
