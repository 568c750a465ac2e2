import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { engines } from '../support/databases.ts';
import { newDelivery } from '../support/new-delivery.ts';

for (const [engine, open] of Object.entries(engines)) {
  describe(`names of deliveries in ${engine}`, () => {
    test('a delivery has its id, every beginning of it, and the id that its sender gave it', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const resolve = async (name: string, limit = 10) => [...(await deliveries.resolve(name, limit))].sort();
      const long = 'k'.repeat(5_000);
      for (const [id, source, dedupKey] of [
        ['aa11-1', '', null],
        ['aa11-2', '', 'order-7'],
        ['aa22-3', 'shop', 'order-7'],
        ['bb33-4', 'github', 'aa22'],
        ['bb33-5', 'github', long],
        ['bb33-6', 'stripe', 'nul\0\u0010'],
        // Another delivery's id as a sender's own.
        ['cc44-7', 'stripe', 'aa11-1'],
      ] as const) {
        await inbox.append(newDelivery({ id, source, dedupKey }));
      }
      for (const [name, ids] of [
        ['aa11-1', ['aa11-1']],
        ['c', ['cc44-7']],
        ['bb33', ['bb33-4', 'bb33-5', 'bb33-6']],
        ['order-7', ['aa11-2', 'aa22-3']],
        ['aa22', ['aa22-3', 'bb33-4']],
        [long, ['bb33-5']],
        ['nul\0\u0010', ['bb33-6']],
        ['', []],
        ['aa11-11', []],
        ['%', []],
        ['order', []],
      ] as const) {
        assert.deepEqual(await resolve(name), ids, name.slice(0, 20));
      }
      assert.equal((await resolve('bb', 2)).length, 2);
    });

    test('a repeated delivery has the id of the first, for its source alone', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const first = newDelivery({ source: 'shop', dedupKey: 'order-7' });
      const other = newDelivery({ source: 'github', dedupKey: 'order-7' });
      assert.equal(await inbox.append(first), 'stored');
      assert.equal(await inbox.append(other), 'stored');
      assert.equal(await inbox.append(newDelivery({ source: 'shop', dedupKey: 'order-7' })), 'duplicate');
      assert.equal(await inbox.idOf('shop', 'order-7'), first.id);
      assert.equal(await inbox.idOf('github', 'order-7'), other.id);
      assert.equal(await inbox.idOf('', 'order-7'), undefined);
    });
  });
}
