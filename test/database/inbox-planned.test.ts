import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { NewJob } from '../../src/inbox/delivery.ts';
import { claim, ids, LATER } from '../support/claim-jobs.ts';
import { engines } from '../support/databases.ts';
import { NOW, newDelivery } from '../support/new-delivery.ts';

const HOUR = 3_600_000;
/** Before the leases of `claim` end. */
const AT = NOW + 3_000;
const job = (changes: Partial<NewJob> = {}): NewJob => ({ target: 't', orderKey: null, ...changes });
const planned = (runAt: number, orderKey: string | null = null) =>
  newDelivery({ jobs: [job({ runAt, orderKey })] });
const keyed = (orderKey: string) => newDelivery({ jobs: [job({ orderKey })] });

for (const [engine, open] of Object.entries(engines)) {
  describe(`times of jobs in ${engine}`, () => {
    test('a job is due at its time and not before, and a priority does not hasten it', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const delivery = newDelivery({ jobs: [job({ runAt: AT, priority: 9 })] });
      const other = newDelivery();
      for (const each of [delivery, other]) await inbox.append(each);
      assert.deepEqual(ids(await claim(inbox, 9)), [other.id]);
      const shown = async () => {
        const found = await deliveries.find(delivery.id);
        return [found?.status, found?.plannedAt, found?.jobs[0]?.plannedAt, found?.jobs[0]?.dueAt];
      };
      assert.deepEqual(await shown(), ['pending', AT, AT, AT]);
      assert.equal((await deliveries.list({}, 9)).items[1]?.plannedAt, AT);
      assert.deepEqual(await inbox.due(['t'], AT - 1), []);
      assert.deepEqual(ids(await claim(inbox, 9, 'other', AT - 1)), []);
      assert.deepEqual(await inbox.due(['t'], AT), ['t']);
      const [claimed] = await claim(inbox, 9, 'me', AT);
      assert.equal(claimed?.delivery.id, delivery.id);
      assert.deepEqual((await shown()).slice(0, 3), ['processing', null, null]);
      // A retry waits for its own time.
      assert.ok(claimed && (await inbox.settle(claimed, 'me', { kind: 'retry', wait: 5, error: 'x' }, AT)));
      assert.deepEqual((await shown()).slice(0, 3), ['pending', null, null]);
    });

    test('in an order it holds its key until its time, and others go on', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const [first, second, other] = [planned(AT, 'k'), keyed('k'), keyed('other')];
      for (const each of [first, second, other]) await inbox.append(each);
      assert.deepEqual(ids(await claim(inbox)), [other.id]);
      assert.deepEqual(ids(await claim(inbox, 9, 'me', AT - 1)), []);
      const [claimed] = await claim(inbox, 9, 'me', AT);
      assert.equal(claimed?.delivery.id, first.id);
      const next = { lease: 5_000, maxBytes: 1_000 };
      const finished = claimed && (await inbox.finish(claimed, 'me', { kind: 'done' }, next, AT));
      assert.equal(finished?.next?.delivery.id, second.id);
    });

    test('the end of a job claims no next one before its time', async () => {
      await using database = await open();
      const { inbox } = database.current;
      for (const each of [keyed('k'), planned(AT, 'k')]) await inbox.append(each);
      const [claimed] = await claim(inbox);
      const next = { lease: 5_000, maxBytes: 1_000 };
      const finished = claimed && (await inbox.finish(claimed, 'me', { kind: 'done' }, next, LATER));
      assert.deepEqual([finished?.recorded, finished?.next], [true, undefined]);
      assert.deepEqual(await inbox.due(['t'], AT - 1), []);
      assert.deepEqual(await inbox.due(['t'], AT), ['t']);
    });

    test('what is replayed is due at once', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const delivery = planned(AT);
      const unhandled = newDelivery({ jobs: [] });
      for (const each of [delivery, unhandled]) await inbox.append(each);
      assert.equal(await deliveries.discard(delivery.id, NOW), true);
      for (const { id } of [delivery, unhandled]) {
        assert.equal(await deliveries.replay(id, [job({ runAt: AT })], NOW), true);
      }
      assert.deepEqual(ids(await claim(inbox)), [delivery.id, unhandled.id]);
    });

    test('a repeat of a dead one is due at once, and one of a waiting one changes nothing', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const delivery = { ...planned(AT), dedupKey: 'k' };
      await inbox.append(delivery);
      assert.equal(await inbox.append(newDelivery({ dedupKey: 'k' })), 'duplicate');
      const [claimed] = await claim(inbox, 1, 'me', AT);
      assert.ok(claimed && (await inbox.settle(claimed, 'me', { kind: 'dead', error: 'x' }, AT)));
      assert.equal(await inbox.append(newDelivery({ dedupKey: 'k' })), 'revived');
      assert.deepEqual(ids(await claim(inbox)), [delivery.id]);
    });

    test('the age of the backlog leaves out what is planned, and what is behind it in its key', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const now = Date.now();
      const later = now + HOUR;
      const receivedAt = now - HOUR;
      const of = (changes: Partial<NewJob>) => newDelivery({ receivedAt, jobs: [job(changes)] });
      await inbox.append(of({ runAt: later }));
      await inbox.append(of({ runAt: later, orderKey: 'k' }));
      await inbox.append(of({ orderKey: 'k' }));
      assert.deepEqual(await inbox.backlog(), { open: 3, dead: 0, oldestAt: undefined, planned: 2 });
      // The one behind is found to wait.
      assert.deepEqual(await claim(inbox, 9, 'me', now), []);
      assert.deepEqual(await inbox.backlog(), { open: 3, dead: 0, oldestAt: undefined, planned: 2 });
      await inbox.append(of({ runAt: now - 7 }));
      assert.equal((await inbox.backlog()).oldestAt, now - 7, 'since its time');
      await inbox.append(of({ orderKey: 'other' }));
      assert.equal((await inbox.backlog()).oldestAt, receivedAt);
    });

    test('orphans expire from their time on', async () => {
      await using database = await open();
      const { inbox } = database.current;
      await inbox.append(planned(AT));
      await inbox.recordHeartbeat([], NOW);
      assert.deepEqual(await inbox.expireOrphans(AT - 1, 9, 'x', AT), []);
      assert.deepEqual(await inbox.expireOrphans(AT, 9, 'x', AT), ['t']);
    });
  });
}
