import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { claim, ids, LATER, LEASE_END } from '../support/claim-jobs.ts';
import { engines } from '../support/databases.ts';
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

    test('what can be claimed is found behind any number of jobs that wait for their order', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const keyed = (orderKey: string | null, receivedAt: number) =>
        inbox.append(newDelivery({ receivedAt, jobs: [{ target: 't', orderKey }] }));
      for (let i = 0; i < 1_200; i += 100) {
        await Promise.all(Array.from({ length: 100 }, () => keyed('many', NOW)));
      }
      for (const key of ['a', null, 'a', 'b']) await keyed(key, NOW + 1);
      const first = await claim(inbox, 2);
      const rest = await claim(inbox, 10);
      assert.deepEqual([first.length, rest.length], [2, 2], 'one of each key, and the one without');
      assert.deepEqual(await claim(inbox, 10), []);
      const [head] = first;
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

    test('a dead job that is opened again does not wait for a lease that has ended', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const jobs = [{ target: 't', orderKey: 'a' }];
      for (let i = 0; i < 2; i++) await inbox.append(newDelivery({ jobs }));
      const [first] = await claim(inbox);
      assert.ok(first && (await inbox.settle(first, 'me', { kind: 'dead', error: 'x' }, LATER)));
      const [second] = await claim(inbox);
      assert.equal(await deliveries.replay(first.delivery.id, jobs, LATER), true);
      assert.deepEqual(await claim(inbox, 10, 'other', LEASE_END - 1), []);
      const claimed = await inbox.claim('t', 10, 'other', 5_000, { now: LEASE_END });
      assert.deepEqual(ids(claimed), [first.delivery.id]);
      assert.ok(claimed[0] && (await inbox.settle(claimed[0], 'other', { kind: 'done' }, LEASE_END)));
      const [next] = await inbox.claim('t', 10, 'other', 5_000, { now: LEASE_END });
      assert.deepEqual([next?.job, next?.attempt, next?.deaths], [second?.job, 1, 1]);
    });
  });
}
