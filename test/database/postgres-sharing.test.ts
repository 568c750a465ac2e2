import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import type { NewDelivery } from '../../src/inbox/delivery.ts';
import { Dispatcher } from '../../src/inbox/dispatch/dispatcher.ts';
import type { Database } from '../../src/sql/database.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { withoutPostgres } from '../support/databases.ts';
import { NOW, newDelivery } from '../support/new-delivery.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { waitFor } from '../support/wait-for.ts';

const LEASE_END = NOW + 5_000;

const delivery = (orderKey: string | null = null, changes: Partial<NewDelivery> = {}) =>
  newDelivery({ jobs: [{ target: 't', orderKey }], ...changes });

describe('processes on one PostgreSQL database', { skip: withoutPostgres ?? false }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres({ settings: { deadlock_timeout: '50ms' } });
  });
  after(() => server[Symbol.asyncDispose]());

  /** Two instances, as two processes have them, and a client that does by hand what a third one would. */
  async function pair() {
    await using cleanup = new AsyncDisposableStack();
    const url = await server.createDatabase();
    const a: Database = cleanup.use(await openDatabase(url));
    const b: Database = cleanup.use(await openDatabase(url));
    const hand = new pg.Client({ connectionString: url });
    await hand.connect();
    cleanup.defer(() => hand.end());
    const rest = cleanup.move();
    return { url, a, b, hand, [Symbol.asyncDispose]: () => rest.disposeAsync() };
  }

  test('the database knows the processes that have it open', async () => {
    await using both = await pair();
    const name = `${hostname()
      .replace(/[^\w.-]/g, '')
      .slice(0, 40)}/${process.pid}`;
    const known = (await both.b.processes?.()) ?? [];
    assert.deepEqual(
      known.map((each) => each.name),
      [name, name],
    );
    assert.ok(known.every(({ since }) => since > 1e12));
    await both.a[Symbol.asyncDispose]();
    await waitFor('the other one alone', async () => (await both.b.processes?.())?.length === 1);
  });

  test('what one has stored the other one serves at once', async () => {
    await using both = await pair();
    const { a, b } = both;
    for (let i = 0; i < 20; i++) {
      const id = await a.users.create({ name: `n${i}`, email: 'a@b' });
      assert.equal(await b.users.readJson(id), `{"id":${id},"name":"n${i}","email":"a@b"}`);
      assert.equal(await b.users.update(id, { name: 'c', email: 'c@d' }), true);
      assert.match((await a.users.readJson(id)) ?? '', /"c"/);
    }
    const [first, second] = await Promise.all([a.users.remove(1), b.users.remove(1)]);
    assert.deepEqual([first, second].sort(), [false, true]);
  });

  test('ids that are given at the same time are each given once', async () => {
    await using both = await pair();
    const { a, b } = both;
    const create = (database: Database) => database.users.create({ name: 'a', email: 'a@b' });
    const ids = await Promise.all(Array.from({ length: 400 }, (_, i) => create(i % 2 === 0 ? a : b)));
    assert.equal(new Set(ids).size, 400);
  });

  test('one claim takes jobs of many targets, of each within its limit, its bytes and its order', async () => {
    await using both = await pair();
    const { inbox } = both.a;
    const store = (target: string, size: number, orderKey: string | null = null) =>
      inbox.append(newDelivery({ body: Buffer.alloc(size), jobs: [{ target, orderKey }] }));
    for (const size of [1, 2, 3]) await store('limited', size);
    for (const size of [400, 500, 200]) await store('bytes', size);
    for (const size of [1, 2]) await store('ordered', size, 'key');
    await store('others', 1);
    const targets = [
      { target: 'limited', limit: 2 },
      { target: 'bytes', limit: 4 },
      { target: 'empty', limit: 4 },
      { target: 'ordered', limit: 4 },
    ];
    const claim = async () =>
      (await inbox.claimEach?.(targets, 'me', 60_000, { maxBytes: 1_000 }))?.map((jobs) =>
        jobs instanceof Error ? jobs : jobs.map(({ delivery: { body } }) => body.byteLength),
      );
    assert.deepEqual(await claim(), [[1, 2], [400, 500], [], [1]]);
    assert.deepEqual(await claim(), [[3], [200], [], []]);
    assert.deepEqual(await claim(), [[], [], [], []]);
    assert.equal((await both.b.inbox.claim('others', 1, 'me', 60_000)).length, 1);
  });

  test('each job is claimed once, however many ask, and each duplicate is stored once', async () => {
    await using both = await pair();
    const { a, b } = both;
    const appended = await Promise.all(
      Array.from({ length: 300 }, (_, i) =>
        (i % 2 === 0 ? a : b).inbox.append(delivery(null, { dedupKey: `key ${i >> 1}` })),
      ),
    );
    assert.equal(appended.filter((result) => result === 'stored').length, 150);
    const claims = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        (i % 2 === 0 ? a : b).inbox.claim('t', 20, `owner ${i}`, 5_000, { now: NOW }),
      ),
    );
    const claimed = claims.flat().map(({ job }) => job);
    assert.equal(claimed.length, 150);
    assert.equal(new Set(claimed).size, 150);
  });

  test('a job that came earlier but was committed later waits for the one of its order that is leased', async () => {
    await using both = await pair();
    const { a, b, hand } = both;
    await hand.query('BEGIN');
    await hand.query(`WITH d AS (INSERT INTO deliveries (id, source, data_pointer, body, received_at)
      VALUES ('early', '', '', '', ${NOW}) RETURNING seq)
      INSERT INTO jobs (delivery, target, due_at, order_key) SELECT seq, 't', ${NOW}, 'k' FROM d`);
    await a.inbox.append(delivery('k'));
    const [held] = await a.inbox.claim('t', 10, 'a', 5_000, { now: NOW });
    assert.ok(held);
    await hand.query('COMMIT');
    assert.deepEqual(await b.inbox.claim('t', 10, 'b', 5_000, { now: NOW }), []);
    assert.equal(await a.inbox.settle(held, 'a', { kind: 'done' }, NOW), true);
    const [early] = await b.inbox.claim('t', 10, 'b', 5_000, { now: NOW });
    assert.equal(early?.delivery.id, 'early');
  });

  test('a claim waits for no job that another statement has locked, and takes the others', async () => {
    await using both = await pair();
    const { a, hand } = both;
    const given = [delivery(), delivery('k'), delivery('k'), delivery(), delivery('l'), delivery()];
    for (const each of given) await a.inbox.append(each);
    const numbers = await hand.query<{ seq: number }>('SELECT seq::int AS seq FROM jobs ORDER BY seq');
    const [first = 0, head = 0] = numbers.rows.map(({ seq }) => seq);
    await hand.query('BEGIN');
    await hand.query(`SELECT 1 FROM jobs WHERE seq IN (${first}, ${head}) FOR UPDATE`);
    const claimed = await a.inbox.claim('t', 10, 'a', 5_000, { now: NOW });
    // Before the locks are given back.
    assert.deepEqual(
      claimed.map(({ delivery: { id } }) => id),
      [3, 4, 5].map((i) => given[i]?.id),
    );
    await hand.query('COMMIT');
    const rest = await a.inbox.claim('t', 10, 'a', 5_000, { now: NOW });
    assert.deepEqual(
      rest.map(({ delivery: { id } }) => id),
      [0, 1].map((i) => given[i]?.id),
    );
    // The same of quarantined jobs.
    await hand.query('UPDATE jobs SET owner = NULL, crashes = 2, due_at = 0');
    await hand.query(`BEGIN; SELECT 1 FROM jobs WHERE seq = ${first} FOR UPDATE`);
    const quarantined = await a.inbox.claim('t', 10, 'a', 5_000, { now: NOW, quarantined: true });
    assert.deepEqual(
      quarantined.map(({ delivery: { id } }) => id),
      [1, 3, 4, 5].map((i) => given[i]?.id),
    );
    await hand.query('COMMIT');
  });

  test('two claims that do not see each other do not both hold a job of one order', async () => {
    await using both = await pair();
    const { a, hand } = both;
    await a.inbox.append(delivery('k'));
    // Another process stores an earlier job and claims it, and neither is committed when this one claims.
    await hand.query('BEGIN');
    await hand.query(`WITH d AS (INSERT INTO deliveries (id, source, data_pointer, body, received_at)
      VALUES ('early', '', '', '', ${NOW}) RETURNING seq)
      INSERT INTO jobs (delivery, target, due_at, order_key, owner, attempts)
      SELECT seq, 't', ${LEASE_END}, 'k', 'b', 1 FROM d`);
    const claim = a.inbox.claim('t', 10, 'a', 5_000, { now: NOW });
    await waitFor('the claim to wait for the other one', async () => {
      const [row] = await server.sql(
        `SELECT count(*)::int FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND state = 'active'`,
      );
      return row?.[0] === 1;
    });
    await hand.query('COMMIT');
    assert.deepEqual(await claim, []);
  });

  test('an ended lease of a dead process comes before a job that was stored late, and then that one', async () => {
    await using both = await pair();
    const { a, hand } = both;
    await a.inbox.append(delivery('k'));
    const [held] = await a.inbox.claim('t', 10, 'dead', 5_000, { now: NOW });
    assert.ok(held);
    await hand.query(`WITH d AS (INSERT INTO deliveries (id, source, data_pointer, body, received_at)
      VALUES ('early', '', '', '', ${NOW}) RETURNING seq)
      INSERT INTO jobs (seq, delivery, target, due_at, order_key) OVERRIDING SYSTEM VALUE
      SELECT 0, seq, 't', ${NOW}, 'k' FROM d`);
    const [again, ...others] = await a.inbox.claim('t', 10, 'a', 5_000, { now: LEASE_END });
    assert.deepEqual([again?.job, others], [held.job, []]);
    const next = { lease: 5_000, maxBytes: 1_000 };
    assert.ok(again);
    const ended = await a.inbox.finish(again, 'a', { kind: 'done' }, next, LEASE_END);
    assert.equal(ended.next?.delivery.id, 'early');
  });

  test('statements that the server ends for the sake of others come through all the same', async () => {
    await using both = await pair();
    const { a, hand } = both;
    const one = await a.users.create({ name: 'a', email: 'a@b' });
    const two = await a.users.create({ name: 'a', email: 'a@b' });
    // The other side is not the one to be ended.
    await hand.query(`SET deadlock_timeout = '1min'`);
    const meet = async (round: number) => {
      await hand.query('BEGIN');
      await hand.query(`UPDATE users SET email = 'x@y' WHERE id = ${two}`);
      const late = { name: `late ${round}`, email: 'l@m' };
      const updates = Promise.all([one, two].map((id) => a.users.update(id, late)));
      await waitFor('the batch to wait', async () => {
        const [row] = await server.sql(`SELECT count(*)::int FROM pg_locks WHERE NOT granted`);
        return row?.[0] === 1;
      });
      await hand.query(`UPDATE users SET email = 'x@y' WHERE id = ${one}`);
      await hand.query('COMMIT');
      assert.deepEqual(await updates, [true, true]);
      assert.match((await a.users.readJson(one)) ?? '', new RegExp(late.name));
    };
    // On a busy machine the server may have looked before both sides waited.
    for (let round = 0; round < 20 && !/deadlock detected/.test(server.log); round++) await meet(round);
    await waitFor('the server to tell of it', () => /deadlock detected/.test(server.log));
  });

  test('two replays at the same time open the jobs once', async () => {
    await using both = await pair();
    const { a, b } = both;
    for (let round = 0; round < 10; round++) {
      const unhandled = delivery(null, { jobs: [] });
      await a.inbox.append(unhandled);
      const jobs = [{ target: 't', orderKey: null }];
      const replays = await Promise.all(
        [a, b].map((each) => each.deliveries.replay(unhandled.id, jobs, NOW)),
      );
      assert.deepEqual(replays.toSorted(), [false, true]);
      assert.equal((await a.deliveries.find(unhandled.id))?.jobs.length, 1);
    }
  });

  test('who follows the order of arrival passes over nothing that is committed late', async () => {
    await using both = await pair();
    const { a, hand, url } = both;
    const store = (client: pg.Client, id: string) =>
      client.query(
        `INSERT INTO deliveries (id, source, data_pointer, body, received_at) VALUES ('${id}', '', '', '', ${NOW})`,
      );
    const older = new pg.Client({ connectionString: url });
    await older.connect();
    try {
      await store(hand, 'first');
      // The transaction that began first stores second, and ends first.
      await older.query('BEGIN; SELECT pg_current_xact_id()');
      await hand.query('BEGIN');
      await store(hand, 'late');
      await store(older, 'early');
      await older.query('COMMIT');
      assert.equal((await a.deliveries.list({}, 10)).items.length, 2, 'the newest are shown at once');
      let ended = false;
      const list = Promise.resolve(a.deliveries.list({}, 10, { after: 0 })).finally(() => {
        ended = true;
      });
      await waitFor('the list to wait', async () => {
        const looks = `SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_locks%' AND pid <> pg_backend_pid()`;
        return ended || (await server.sql(looks, url)).length > 0;
      });
      // It waits for none that begins later.
      await older.query('BEGIN');
      await store(older, 'later');
      await hand.query('COMMIT');
      assert.deepEqual(
        (await list).items.map(({ id }) => id),
        ['first', 'late', 'early'],
      );
      assert.deepEqual((await a.deliveries.list({}, 10, { after: 3 })).items, []);
      await older.query('COMMIT');
      assert.equal((await a.deliveries.list({}, 10, { after: 3 })).items[0]?.id, 'later');
    } finally {
      await older.end();
    }
  });

  test('processes that store at the same time are followed without a loss', async () => {
    await using both = await pair();
    const { a, b } = both;
    const told: string[] = [];
    const given: string[] = [];
    let storing = true;
    const follow = async () => {
      for (let after = 0; ; ) {
        const last = !storing;
        const { items } = await b.deliveries.list({}, 1_000, { after });
        told.push(...items.map(({ id }) => id));
        after = items.at(-1)?.seq ?? after;
        if (last && items.length === 0) return;
      }
    };
    const store = async (database: Database) => {
      for (let round = 0; round < 40; round++) {
        const some = Array.from({ length: 20 }, () => delivery());
        given.push(...some.map(({ id }) => id));
        await Promise.all(some.map((one) => database.inbox.append(one)));
      }
    };
    const following = follow();
    await Promise.all([store(a), store(a), store(b), store(b)]);
    storing = false;
    await following;
    assert.deepEqual(told.toSorted(), given.toSorted());
  });

  test('a dispatcher is woken by the delivery that another process stores', async () => {
    await using both = await pair();
    const { a, b } = both;
    const handled: string[] = [];
    const dispatcher = new Dispatcher({
      inbox: b.inbox,
      targets: [
        {
          name: 't',
          run: (job) => void handled.push(job.delivery.id),
          concurrency: 4,
          timeout: 1_000,
          maxAttempts: 1,
          backoff: { base: 1, cap: 1 },
        },
      ],
      events: {
        settled() {},
        leaseLost() {},
        overdue() {},
        storeFailed: (error) => assert.fail(String(error)),
      },
      // It would not look by itself during this test.
      interval: 3_600_000,
    });
    dispatcher.start();
    try {
      await waitFor('its first look', async () => (await b.inbox.backlog()).open === 0);
      for (let i = 0; i < 5; i++) {
        const next = delivery(null, { receivedAt: Date.now() });
        await a.inbox.append(next);
        await waitFor('the other process to handle it', () => handled.includes(next.id), 2_000);
      }
      assert.equal(handled.length, 5);
      await server.sql(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%LISTEN%' AND pid <> pg_backend_pid()`,
      );
      const missed = delivery(null, { receivedAt: Date.now() });
      await a.inbox.append(missed);
      await waitFor('what came while nobody listened', () => handled.includes(missed.id));
    } finally {
      await dispatcher.stop(AbortSignal.timeout(1_000));
    }
  });

  test('the size is that of all deliveries, whoever stored or removed them', async () => {
    await using both = await pair();
    const { a, b } = both;
    const body = Buffer.alloc(10_000);
    await Promise.all([a, b, a, b].map(({ inbox }) => inbox.append(delivery(null, { body, jobs: [] }))));
    const full = await a.inbox.size();
    assert.ok(full > 40_000 && full < 50_000, String(full));
    const unhandled = (before: number) => ({ kind: 'unhandled', before, now: NOW + 9 }) as const;
    assert.equal((await b.inbox.prune(unhandled(NOW))).removed, 0);
    const steps = await Promise.all([a, b, a, b].map(({ inbox }) => inbox.prune(unhandled(NOW + 1))));
    assert.equal(
      steps.reduce((sum, { removed }) => sum + removed, 0),
      4,
    );
    assert.equal(await a.inbox.size(), 0);
    assert.equal(await b.inbox.size(), 0);
  });
});
