import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import type { ClaimedJob } from '../../src/inbox/delivery.ts';
import type { Database } from '../../src/sql/database.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { withoutPostgres } from '../support/databases.ts';
import { NOW, newDelivery } from '../support/new-delivery.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { waitFor } from '../support/wait-for.ts';

const ROUNDS = 20;

/** Rounds in which a machine may be too busy for the lock to be released while a write still waits, which is a second. */
const MAX_ROUNDS = 20;

/** Whether a promise has settled. */
async function hasSettled(promise: Promise<unknown>): Promise<boolean> {
  const pending = {};
  return (await Promise.race([promise, pending])) !== pending;
}

/** Makes a write wait for a lock, again where it had given up before the lock was released. */
async function whileLocked(write: (round: number) => Promise<unknown>, expected: unknown): Promise<void> {
  for (let round = 1; ; round++) {
    const found = await write(round);
    if (/lock timeout/.test(String(found)) && round < MAX_ROUNDS) continue;
    assert.deepEqual(found, expected);
    return;
  }
}

describe('locks of processes on one PostgreSQL database', { skip: withoutPostgres ?? false }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres({ settings: { deadlock_timeout: '5ms' } });
  });
  after(() => server[Symbol.asyncDispose]());

  /** Three processes, and a client that does by hand what another one would. */
  async function processes() {
    await using cleanup = new AsyncDisposableStack();
    const url = await server.createDatabase();
    const all: Database[] = [];
    for (let i = 0; i < 3; i++) all.push(cleanup.use(await openDatabase(url)));
    const hand = new pg.Client({ connectionString: url });
    await hand.connect();
    cleanup.defer(() => hand.end());
    const rest = cleanup.move();
    const [{ inbox } = assert.fail()] = all;
    return { all, inbox, hand, [Symbol.asyncDispose]: () => rest.disposeAsync() };
  }

  test('deliveries that are sent to several processes at once are stored without a deadlock', async () => {
    await using three = await processes();
    const { inbox, hand } = three;
    const store = (key: string) =>
      hand.query(`INSERT INTO deliveries (id, source, data_pointer, body, received_at, dedup_key)
        VALUES ('${key}', '', '', '', ${NOW}, '${key}')`);
    await whileLocked(
      async (round) => {
        const [first, second] = [`a${round}`, `b${round}`];
        await hand.query('BEGIN');
        await store(first);
        const appends = Promise.all(
          [second, first].map((dedupKey) => inbox.append(newDelivery({ dedupKey }))),
        ).catch((error: unknown) => error);
        await waitFor('the batch to wait, or its end', async () => {
          const [row] = await server.sql('SELECT count(*)::int FROM pg_locks WHERE NOT granted');
          return row?.[0] === 1 || (await hasSettled(appends));
        });
        await store(second);
        await hand.query('COMMIT');
        return appends;
      },
      ['duplicate', 'duplicate'],
    );
    assert.doesNotMatch(server.log, /deadlock detected/);
  });

  test('deliveries of one batch keep the order of arrival, whatever their keys', async () => {
    await using three = await processes();
    const sent = Array.from({ length: 40 }, (_, i) => newDelivery({ dedupKey: `${(i * 7) % 40}` }));
    await Promise.all(sent.map((each) => three.inbox.append(each)));
    const { items } = await (three.all[1] ?? assert.fail()).deliveries.list({}, 100, { after: 0 });
    assert.deepEqual(
      items.map(({ id }) => id),
      sent.map(({ id }) => id),
    );
    const jobs = await three.inbox.claim('t', 100, 'me', 5_000, { now: NOW });
    assert.deepEqual(
      jobs.map(({ delivery: { id } }) => id),
      sent.map(({ id }) => id),
    );
  });

  test('renewals and outcomes of the same jobs do not deadlock', async () => {
    await using three = await processes();
    const [a, b = assert.fail()] = [three.inbox, three.all[1]?.inbox];
    for (let round = 0; round < ROUNDS; round++) {
      await Promise.all(Array.from({ length: 40 }, () => a.append(newDelivery())));
      const jobs: readonly ClaimedJob[] = await a.claim('t', 100, 'me', 5_000);
      const numbers = jobs.map(({ job }) => job);
      const [settled] = await Promise.all([
        Promise.all(jobs.toReversed().map((job) => a.settle(job, 'me', { kind: 'done' }))),
        b.renew('me', numbers, 5_000),
        b.renew('me', numbers.toReversed(), 5_000),
      ]);
      assert.ok(settled.every((recorded) => recorded));
    }
    assert.doesNotMatch(server.log, /deadlock detected/);
  });

  test('a renewal waits for no lock, and takes a locked job neither for renewed nor for lost', async () => {
    await using three = await processes();
    const { inbox, hand } = three;
    for (let i = 0; i < 3; i++) await inbox.append(newDelivery());
    const jobs = (await inbox.claim('t', 3, 'me', 5_000)).map(({ job }) => job);
    await hand.query('BEGIN');
    await hand.query(`SELECT 1 FROM jobs WHERE seq = ${jobs[1]} FOR UPDATE`);
    assert.deepEqual(await inbox.renew('me', jobs, 5_000), { renewed: [jobs[0], jobs[2]], lost: [] });
    await hand.query(`UPDATE jobs SET owner = 'other' WHERE seq = ${jobs[1]}`);
    await hand.query('COMMIT');
    assert.deepEqual(await inbox.renew('me', jobs, 5_000), { renewed: [jobs[0], jobs[2]], lost: [jobs[1]] });
  });

  test('a write that has waited too long for a lock is tried again', async () => {
    await using three = await processes();
    const { inbox, hand } = three;
    const timeouts = () => server.log.match(/lock timeout/g)?.length ?? 0;
    await whileLocked(async (round) => {
      const dedupKey = `key${round}`;
      await hand.query('BEGIN');
      await hand.query(`INSERT INTO deliveries (id, source, data_pointer, body, received_at, dedup_key)
        VALUES ('${dedupKey}', '', '', '', ${NOW}, '${dedupKey}')`);
      const before = timeouts();
      const append = inbox.append(newDelivery({ dedupKey })).catch((error: unknown) => error);
      await waitFor('the wait to time out', () => timeouts() > before);
      await hand.query('COMMIT');
      return append;
    }, 'duplicate');
  });
});
