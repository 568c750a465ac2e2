import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { openDatabase } from '../../../src/sql/open.ts';
import { bodyFor, openSlots, wrongBodies } from '../../support/body-slots.ts';
import { postgresDatabase, withoutPostgres } from '../../support/databases.ts';
import { move } from '../../support/move.ts';
import { newDelivery } from '../../support/new-delivery.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const HOUR = 60 * 60 * 1_000;

describe('bodies in slots', { skip: withoutPostgres ?? false }, () => {
  test('claims, runs of a key, lists, shows and replays read a body wherever it is', async () => {
    await using slots = await openSlots(await postgresDatabase());
    const { database, url } = slots;
    const jobs = [{ target: 't', orderKey: 'key' }];
    const [first] = await slots.store({ jobs });
    await using off = await openDatabase(url);
    const inRow = newDelivery({ receivedAt: Date.now(), jobs });
    await off.inbox.append({ ...inRow, body: bodyFor(inRow.id) });
    await slots.rotate();
    const [last] = await slots.store({ jobs });
    assert.ok(first && last);
    const ids = [first.id, inRow.id, last.id];
    const found = await slots.slots();
    assert.deepEqual(
      ids.map((id) => found.get(id)),
      [0, null, 1],
    );
    assert.deepEqual(await slots.filled(), [1, 1]);

    for (const { inbox, deliveries } of [database, off]) {
      let [job] = await inbox.claim('t', 5, 'owner', HOUR);
      const read: [string, string][] = [];
      while (job !== undefined) {
        read.push([job.delivery.id, String(Buffer.from(job.delivery.body))]);
        const next = { lease: HOUR, maxBytes: 1_000_000 };
        job = (await inbox.finish(job, 'owner', { kind: 'done' }, next)).next;
      }
      assert.deepEqual(
        read,
        ids.map((id) => [id, String(bodyFor(id))]),
      );
      assert.deepEqual(await wrongBodies({ ...database, deliveries }, ids), []);
      const { items } = await deliveries.list({}, 10);
      assert.deepEqual(
        items.map(({ id, size }) => [id, size]),
        ids.toReversed().map((id) => [id, bodyFor(id).byteLength]),
      );
      for (const id of ids) assert.ok(await deliveries.replay(id, jobs, Date.now()));
    }
  });

  test('a claim is bounded by the size of bodies in slots', async () => {
    await using slots = await openSlots(await postgresDatabase());
    await slots.store(...Array.from({ length: 3 }, () => ({ body: Buffer.alloc(1_000) })));
    const jobs = await slots.database.inbox.claim('t', 5, 'owner', HOUR, { maxBytes: 2_500 });
    assert.equal(jobs.length, 2);
  });

  test('the size of the inbox is the same wherever bodies are', async () => {
    await using slots = await openSlots(await postgresDatabase());
    await slots.store({ body: Buffer.alloc(5_000) }, { body: Buffer.alloc(7_000) });
    assert.equal(await slots.database.inbox.size(), 12_000 + 2 * 500);
    await slots.end(await slots.claim(2));
    assert.equal(await slots.database.inbox.size(), 0);
  });

  test('a move takes bodies out of slots, and back', async () => {
    await using folder = await temporaryFolder();
    const [from, to] = [await postgresDatabase(), await postgresDatabase()];
    const file = `sqlite:${join(folder.path, 'moved.db')}`;
    let ids: readonly string[];
    {
      await using slots = await openSlots(from);
      ids = (await slots.store(...Array.from({ length: 50 }, () => ({})))).map(({ id }) => id);
      assert.deepEqual(await slots.filled(), [50]);
    }
    await move(from, file);
    await move(file, to);
    for (const url of [file, to]) {
      await using moved = await openDatabase(url);
      assert.deepEqual(await wrongBodies(moved, ids), []);
    }
  });
});
