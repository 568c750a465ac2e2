import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { engines } from '../support/databases.ts';
import { newDelivery } from '../support/new-delivery.ts';

for (const [engine, open] of Object.entries(engines)) {
  describe(`marks in ${engine}`, () => {
    test('a mark moves only from where it is, and a delivery is stored with it or not at all', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const { checkpoints } = inbox;
      const name = 'a\0b';
      assert.equal(await checkpoints.move({ name, from: 0, to: 5 }), true);
      assert.equal(await checkpoints.move({ name, from: 0, to: 9 }), false);
      assert.equal(
        await checkpoints.append({ name, from: 4, to: 9 }, newDelivery({ dedupKey: 'x' })),
        undefined,
      );
      assert.deepEqual((await deliveries.list({}, 9)).items, []);

      const stored = newDelivery({ dedupKey: 'x' });
      assert.equal(await checkpoints.append({ name, from: 5, to: 9 }, stored), 'stored');
      assert.equal((await inbox.backlog()).open, 1);
      const again = newDelivery({ dedupKey: 'x' });
      assert.equal(await checkpoints.append({ name, from: 9, to: 10 }, again), 'duplicate');
      assert.equal(await checkpoints.append({ name: 'new', from: 0, to: 3 }, newDelivery()), 'stored');
      await database.reopen?.();
      const read = await database.current.inbox.checkpoints.read([name, 'new', 'none']);
      assert.deepEqual(Object.fromEntries(read), { [name]: 10, new: 3 });
      assert.equal((await database.current.deliveries.list({}, 9)).items.length, 2);
    });

    test('of several that move it from the same place one stores its delivery', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const move = { name: 'm', from: 0, to: 1 };
      const results = await Promise.all(
        Array.from({ length: 20 }, () => inbox.checkpoints.append(move, newDelivery())),
      );
      assert.equal(results.filter((each) => each === 'stored').length, 1);
      assert.equal(results.filter((each) => each === undefined).length, 19);
      assert.equal((await deliveries.list({}, 99)).items.length, 1);
    });

    test('a delivery that a mark stored gets a number that was never used', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const last = newDelivery({ jobs: [] });
      for (const each of [newDelivery(), last]) await inbox.append(each);
      const seq = (await deliveries.find(last.id))?.seq ?? 0;
      const { receivedAt } = last;
      await inbox.prune({ kind: 'unhandled', before: receivedAt + 1, now: receivedAt + 2 });
      const marked = newDelivery();
      await inbox.checkpoints.append({ name: 'm', from: 0, to: 1 }, marked);
      assert.equal((await deliveries.find(marked.id))?.seq, seq + 1);
    });
  });
}
