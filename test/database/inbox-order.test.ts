import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import pg from 'pg';
import type { ClaimedJob } from '../../src/inbox/delivery.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { claim, ids, LATER, LEASE_END } from '../support/claim-jobs.ts';
import { engines, postgresUrl, withoutPostgres } from '../support/databases.ts';
import { NOW, newDelivery } from '../support/new-delivery.ts';

for (const [engine, open] of Object.entries(engines)) {
  describe(`order of jobs in ${engine}`, () => {
    test('jobs with one key are claimed one after the other, other keys meanwhile', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const keyed = (orderKey: string | null) => newDelivery({ jobs: [{ target: 't', orderKey }] });
      const all = [keyed('a'), keyed('a'), keyed('b'), keyed(null), keyed(null)];
      for (const each of all) await inbox.append(each);
      const first = await claim(inbox);
      assert.deepEqual(
        ids(first),
        [0, 2, 3, 4].map((i) => all[i]?.id),
      );
      const head = first[0];
      assert.ok(head);
      await inbox.settle(head, 'me', { kind: 'retry', wait: 9_000, error: 'x' }, LATER);
      assert.deepEqual(await claim(inbox), [], 'a retry keeps its place');
      const [again] = await inbox.claim('t', 10, 'me', 11_000, { now: LATER + 9_000 });
      assert.ok(again && again.job === head.job);
      await inbox.settle(again, 'me', { kind: 'done' }, LATER);
      assert.deepEqual(ids(await claim(inbox)), [all[1]?.id]);
    });

    test('jobs without a key delay none with one, however many come', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const add = async (orderKey: string | null, receivedAt = NOW) => {
        const each = newDelivery({ receivedAt, jobs: [{ target: 't', orderKey }] });
        await inbox.append(each);
        return each.id;
      };
      const keyed = [await add('a'), await add('b')];
      const claimed = new Set<string | undefined>();
      for (let i = 0; i < 4; i++) {
        await add(null, NOW + 1);
        await add(null, NOW + 1);
        for (const id of ids(await claim(inbox, 3))) claimed.add(id);
      }
      assert.deepEqual(
        keyed.map((id) => claimed.has(id)),
        [true, true],
      );
      assert.equal(claimed.size, 10);
    });

    test('what can be claimed is found behind any number of jobs that wait for their order', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const keyed = (orderKey: string | null, receivedAt: number) =>
        inbox.append(newDelivery({ receivedAt, jobs: [{ target: 't', orderKey }] }));
      for (let i = 0; i < 1_200; i += 100) {
        await Promise.all(Array.from({ length: 100 }, () => keyed('many', NOW)));
      }
      for (const key of ['a', null, 'a', 'b']) await keyed(key, NOW + 1);
      const all: ClaimedJob[] = [];
      for (let more = await claim(inbox, 2); more.length > 0; more = await claim(inbox, 2)) all.push(...more);
      assert.equal(all.length, 4, 'one of each key, and the one without');
      const [head] = all;
      assert.ok(head && (await inbox.settle(head, 'me', { kind: 'done' }, LATER)));
      const [next, ...others] = await claim(inbox, 10);
      assert.deepEqual([next?.job, others.length], [head.job + 1, 0]);
    });

    test('a dead job that is opened again waits for the one of its order that is leased', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const jobs = [{ target: 't', orderKey: 'a' }];
      for (let i = 0; i < 3; i++) await inbox.append(newDelivery({ jobs }));
      const [first] = await claim(inbox);
      assert.ok(first && (await inbox.settle(first, 'me', { kind: 'dead', error: 'x' }, LATER)));
      const [second] = await claim(inbox);
      assert.ok(second);
      assert.equal(await deliveries.replay(first.delivery.id, jobs, LATER), true);
      assert.deepEqual(await claim(inbox), []);
      assert.ok(await inbox.settle(second, 'me', { kind: 'done' }, LATER));
      const [again] = await claim(inbox);
      assert.equal(again?.job, first.job);
    });

    test('a job whose lease has ended is claimed again before a dead one that was opened meanwhile', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const jobs = [{ target: 't', orderKey: 'a' }];
      for (let i = 0; i < 2; i++) await inbox.append(newDelivery({ jobs }));
      const [first] = await claim(inbox);
      assert.ok(first && (await inbox.settle(first, 'me', { kind: 'dead', error: 'x' }, LATER)));
      const [second] = await claim(inbox);
      assert.equal(await deliveries.replay(first.delivery.id, jobs, LATER), true);
      assert.deepEqual(await claim(inbox, 10, 'other', LEASE_END - 1), []);
      const next = async () => {
        const [job, ...others] = await inbox.claim('t', 10, 'other', 5_000, { now: LEASE_END });
        assert.ok(job && others.length === 0);
        assert.ok(await inbox.settle(job, 'other', { kind: 'done' }, LEASE_END));
        return [job.job, job.attempt, job.crashes];
      };
      assert.deepEqual(await next(), [second?.job, 1, 1]);
      assert.deepEqual(await next(), [first.job, 1, 0]);
    });
  });
}

test('a job that a person ends in PostgreSQL lets the next one of its key begin', {
  skip: withoutPostgres ?? false,
}, async () => {
  const url = await postgresUrl();
  await using database = await openDatabase(url);
  const { inbox } = database;
  const jobs = [{ target: 't', orderKey: 'k' }];
  for (let i = 0; i < 2; i++) await inbox.append(newDelivery({ jobs }));
  const [head] = await claim(inbox);
  assert.ok(head);
  assert.deepEqual(await claim(inbox), []);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`UPDATE jobs SET status = 'done', owner = NULL WHERE seq = $1`, [head.job]);
  await client.end();
  const [next, ...others] = await claim(inbox);
  assert.deepEqual([next?.job, others.length], [head.job + 1, 0]);
});
