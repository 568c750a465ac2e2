import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { NewDelivery } from '../../src/inbox/delivery.ts';
import type { Inbox } from '../../src/inbox/inbox.ts';
import { claim, ids, LATER } from '../support/claim-jobs.ts';
import { engines } from '../support/databases.ts';
import { NOW, newDelivery } from '../support/new-delivery.ts';

const DAY = 86_400_000;
const prior = (priority: number, receivedAt = NOW, orderKey: string | null = null): NewDelivery =>
  newDelivery({ receivedAt, jobs: [{ target: 't', orderKey, priority }] });

/** Stores deliveries one after the other; gives their ids. */
async function stored(inbox: Inbox, ...deliveries: readonly NewDelivery[]): Promise<readonly string[]> {
  for (const delivery of deliveries) await inbox.append(delivery);
  return deliveries.map(({ id }) => id);
}

for (const [engine, open] of Object.entries(engines)) {
  describe(`priorities in ${engine}`, () => {
    test('higher ones are claimed first, and those of one claim begin first', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const [plain, ...rest] = await stored(
        inbox,
        newDelivery(),
        prior(1),
        prior(7, NOW + 9),
        prior(7, NOW + 9),
      );
      const [low, high, also] = rest;
      assert.deepEqual(ids(await claim(inbox, 1)), [high]);
      assert.deepEqual(ids(await claim(inbox, 3)), [also, low, plain]);
    });

    test('what has waited for a day longer counts as one level higher', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const [old, young, high] = await stored(
        inbox,
        newDelivery({ receivedAt: NOW - 2 * DAY - 1 }),
        newDelivery({ receivedAt: NOW - 2 * DAY + 1 }),
        prior(2),
      );
      const order = [];
      for (let i = 0; i < 3; i++) order.push(...ids(await claim(inbox, 1)));
      assert.deepEqual(order, [old, high, young]);
    });

    test('what is given back or replayed keeps its priority, and a retry comes at its time', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const [high = ''] = await stored(inbox, prior(1), newDelivery());
      const settle = async (kind: 'released' | 'crashed' | 'retry' | 'dead') => {
        const [job] = await claim(inbox, 1);
        assert.ok(job);
        const outcome = kind === 'retry' ? { kind, wait: 0, error: 'x' } : { kind, error: 'x' };
        assert.ok(await inbox.settle(job, 'me', outcome, LATER));
        return job.delivery.id;
      };
      assert.equal(await settle('released'), high);
      assert.equal(await settle('crashed'), high);
      assert.equal(await settle('dead'), high);
      const jobs = [{ target: 't', orderKey: null }];
      assert.equal(await deliveries.replay(high, jobs, LATER), true);
      assert.equal(await settle('retry'), high);
      assert.notEqual(await settle('released'), high);
    });

    test('a priority changes nothing in an order', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const [first, second] = await stored(inbox, prior(0, NOW, 'k'), prior(9, NOW, 'k'));
      const [job] = await claim(inbox, 2);
      assert.ok(job);
      assert.equal(job.delivery.id, first);
      assert.ok(await inbox.settle(job, 'me', { kind: 'done' }, LATER));
      assert.deepEqual(ids(await claim(inbox, 2)), [second]);
    });

    test('the log shows no time before the receipt', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const [id = ''] = await stored(inbox, prior(3));
      assert.equal((await deliveries.find(id))?.jobs[0]?.dueAt, NOW);
    });
  });
}
