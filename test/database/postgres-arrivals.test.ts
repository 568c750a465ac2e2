import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { StoreUnavailableError } from '../../src/core/errors.ts';
import type { Database } from '../../src/sql/database.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { withoutPostgres } from '../support/databases.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { RunningTime } from '../support/running-time.ts';
import { eventsUntil, followAll } from '../support/user-events.ts';
import { waitFor } from '../support/wait-for.ts';

const userOf = (name: string) => ({ name, email: 'a@b' });

describe('new users on PostgreSQL, whoever creates them', { skip: withoutPostgres ?? false }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres();
  });
  after(() => server[Symbol.asyncDispose]());

  /** Two instances, as two processes have them, and a client that does by hand what a third one would. */
  async function pair() {
    await using cleanup = new AsyncDisposableStack();
    const url = await server.createDatabase();
    const a: Database = cleanup.use(await openDatabase(url));
    const b: Database = cleanup.use(await openDatabase(url));
    const hand = new pg.Client({ connectionString: url });
    hand.on('error', () => {});
    await hand.connect();
    cleanup.defer(() => hand.end());
    const rest = cleanup.move();
    return { url, a, b, hand, [Symbol.asyncDispose]: () => rest.disposeAsync() };
  }

  /** Gathers the names of the users that a subscriber is told of. */
  async function subscriber(database: Database) {
    const users = await database.userFeed.subscribe('created');
    const names: string[] = [];
    const ids: number[] = [];
    const end = (async () => {
      for await (const { id, name } of users) {
        names.push(name);
        ids.push(Number(id));
      }
    })();
    return {
      names,
      ids,
      has: (...wanted: readonly string[]) =>
        waitFor(`${wanted}`, () => wanted.every((name) => names.includes(name))),
      async [Symbol.asyncDispose]() {
        await users.return?.();
        await end;
      },
    };
  }

  /** When a subscriber's process last asked for new users, unless it has asked for something else since. */
  async function lastLook(hand: pg.Client): Promise<string | undefined> {
    const { rows } = await hand.query(
      `SELECT max(query_start)::text AS at FROM pg_stat_activity
        WHERE query LIKE '%user_events WHERE position >=%' AND datname = current_database() AND pid <> pg_backend_pid()`,
    );
    return rows[0].at ?? undefined;
  }

  test('every subscriber is told once of each user that any process creates, in order', async () => {
    await using both = await pair();
    const { a, b } = both;
    await a.users.create(userOf('before'));
    await using atA = await subscriber(a);
    await using atB = await subscriber(b);
    const made = await Promise.all(
      Array.from({ length: 500 }, (_, i) => (i % 2 === 0 ? a : b).users.create(userOf(`n${i}`))),
    );
    for (const { names, ids, has } of [atA, atB]) {
      await has(...made.map((_, i) => `n${i}`));
      assert.equal(names.length, 500);
      assert.deepEqual(
        ids.toSorted((x, y) => x - y),
        made.toSorted((x, y) => x - y),
      );
    }
    for (const name of ['x', 'y', 'z']) await b.users.create(userOf(name));
    await atA.has('x', 'y', 'z');
    assert.deepEqual(atA.names.slice(-3), ['x', 'y', 'z']);
  });

  test('the news of another process is there long before the next look', async () => {
    await using both = await pair();
    const { a, b } = both;
    await using at = await subscriber(b);
    const took: number[] = [];
    for (let i = 0; i < 15; i++) {
      await a.users.create(userOf(`n${i}`));
      using time = new RunningTime();
      await at.has(`n${i}`);
      took.push(time.elapsed);
    }
    assert.ok((took.toSorted((x, y) => x - y)[7] ?? 0) < 500, `${took}`);
  });

  test('one who comes later is not told of what was there, one who is told of a change hears nothing', async () => {
    await using both = await pair();
    const { a, b } = both;
    await using first = await subscriber(b);
    const id = await a.users.create(userOf('one'));
    await using second = await subscriber(b);
    await a.users.update(id, userOf('changed'));
    await a.users.create(userOf('two'));
    await Promise.all([first.has('two'), second.has('two')]);
    assert.deepEqual(second.names, ['two']);
    assert.ok(['one', 'changed'].includes(first.names[0] ?? ''));
    assert.equal(first.names.length, 2);
  });

  test('who is committed late is told of all the same, who is rolled back never, and neither holds up others', async () => {
    await using both = await pair();
    const { a, b, hand } = both;
    const insert = (name: string) => hand.query(`INSERT INTO users (name, email) VALUES ('${name}', 'a@b')`);
    await a.users.create(userOf('before'));
    await hand.query('BEGIN');
    await insert('under way when the subscriber came');
    await a.users.create(userOf('also before'));
    await using at = await subscriber(b);
    await a.users.create(userOf('one'));
    await at.has('one');
    await hand.query('COMMIT');
    await at.has('under way when the subscriber came');
    await hand.query('BEGIN');
    await insert('late');
    await a.users.create(userOf('two'));
    await at.has('two');
    await hand.query('COMMIT; BEGIN');
    await insert('never');
    await hand.query('ROLLBACK');
    await a.users.create(userOf('three'));
    await at.has('late', 'three');
    assert.deepEqual(at.names, ['one', 'under way when the subscriber came', 'two', 'late', 'three']);
  });

  test('nothing is lost when the notifier is cut off, nor when the server crashes', async () => {
    await using both = await pair();
    const { a, b, url } = both;
    await using at = await subscriber(b);
    await a.users.create(userOf('one'));
    await at.has('one');
    await server.sql(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE (query LIKE '%LISTEN%' OR query LIKE 'NOTIFY%') AND pid <> pg_backend_pid()`,
      url,
    );
    await a.users.create(userOf('unheard'));
    await at.has('unheard');
    await server.stop('immediate');
    await server.start();
    let tries = 0;
    await waitFor('a write', () =>
      a.users.create(userOf(`after the crash ${++tries}`)).then(
        () => true,
        (error) => {
          assert.ok(error instanceof StoreUnavailableError);
          return false;
        },
      ),
    );
    await at.has(`after the crash ${tries}`);
    assert.deepEqual(at.names.slice(0, 2), ['one', 'unheard']);
    assert.equal(new Set(at.names).size, at.names.length);
  });

  test('users of a process that dies before it notifies are found within a second or so', async () => {
    await using both = await pair();
    await using at = await subscriber(both.b);
    await both.hand.query(`INSERT INTO users (name, email) VALUES ('silent', 'a@b')`);
    await at.has('silent');
  });

  test('many that come at once come all, to one who keeps up', async () => {
    await using both = await pair();
    await using at = await subscriber(both.b);
    await both.hand.query(
      `INSERT INTO users (name, email) SELECT 'n' || n, 'a@b' FROM generate_series(1, 5000) AS n`,
    );
    await at.has('n5000');
    assert.deepEqual(
      at.names,
      Array.from({ length: 5_000 }, (_, i) => `n${i + 1}`),
    );
  });

  test('every process gives the events in one order, and one that is committed late comes late everywhere', async () => {
    await using both = await pair();
    const { a, b, hand } = both;
    const atA = await a.userFeed.follow();
    const atB = await b.userFeed.follow(atA.start);
    await hand.query('BEGIN');
    await hand.query(`INSERT INTO users (name, email) VALUES ('late', 'a@b')`);
    await Promise.all(
      Array.from({ length: 300 }, (_, i) => (i % 2 === 0 ? a : b).users.create(userOf(`n${i}`))),
    );
    const [first] = await eventsUntil(atA, 300);
    await hand.query('COMMIT');
    await b.users.create(userOf('end'));
    const rest = await followAll(await b.userFeed.follow(first), '"name":"end"');
    assert.equal(rest.length, 301);
    assert.match(rest.at(-2)?.json ?? '', /"late"/);
    assert.deepEqual((await followAll(atB, '"name":"end"')).slice(1), rest);
    const positions = rest.map(({ position }) => position);
    assert.deepEqual(
      positions,
      positions.toSorted((x, y) => x - y),
    );
  });

  test('whoever follows a database that is replaced is told that events are missing', async () => {
    await using both = await pair();
    const { a, b, hand } = both;
    const users = await b.userFeed.subscribe('created');
    for (const name of ['one', 'two', 'three']) await a.users.create(userOf(name));
    for (const name of ['one', 'two', 'three']) assert.equal((await users.next()).value?.name, name);
    const refused = assert.rejects(users.next(), { code: 'EVENTS_GONE' });
    await hand.query('TRUNCATE users; ALTER SEQUENCE users_id_seq RESTART');
    await refused;
    await users.return?.();
    await using at = await subscriber(b);
    await a.users.create(userOf('again'));
    await at.has('again');
  });

  test('nobody looks while nobody subscribes', async () => {
    await using both = await pair();
    const { a, b, hand } = both;
    {
      await using at = await subscriber(b);
      await a.users.create(userOf('one'));
      await at.has('one');
    }
    // The last look may be under way still, but then they end.
    const before = await waitFor('the last look', async () => {
      const last = await lastLook(hand);
      await delay(1_200);
      return (await lastLook(hand)) === last && last;
    });
    for (let i = 0; i < 3; i++) await a.users.create(userOf('two'));
    await delay(1_200);
    assert.equal(await lastLook(hand), before);
    await using again = await subscriber(b);
    await a.users.create(userOf('three'));
    await again.has('three');
    assert.deepEqual(again.names, ['three']);
  });

  test('without its server a subscriber is refused', async () => {
    await using both = await pair();
    await server.stop('fast');
    try {
      await assert.rejects(async () => both.b.userFeed.subscribe('created'), StoreUnavailableError);
    } finally {
      await server.start();
    }
    await waitFor('the database', () =>
      Promise.resolve(both.b.ping()).then(
        () => true,
        () => false,
      ),
    );
    await using at = await subscriber(both.b);
    await both.a.users.create(userOf('one')).catch(() => both.a.users.create(userOf('one')));
    await at.has('one');
  });
});
