import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openSqlite } from '../sqlite/open.ts';

test('a page looks at 5,000 deliveries at the most, and says where to go on', async () => {
  await using database = openSqlite(':memory:');
  const { inbox, deliveries } = database;
  const append = (event: string, i: number) =>
    inbox.append({
      id: `${event} ${i}`,
      source: '',
      event,
      dataPointer: '',
      contentType: null,
      body: Buffer.from('{}'),
      receivedAt: i,
      dedupKey: null,
      jobs: [],
    });
  await append('rare', 0);
  await Promise.all(Array.from({ length: 10_000 }, (_, i) => append('often', i)));

  assert.deepEqual(await deliveries.list({ event: 'rare' }, 10), { items: [], next: 5_002 });
  assert.deepEqual(await deliveries.list({ event: 'rare' }, 10, { before: 5_002 }), { items: [], next: 2 });
  const last = await deliveries.list({ event: 'rare' }, 10, { before: 2 });
  assert.deepEqual([last.items.map(({ id }) => id), last.next], [['rare 0'], undefined]);
  assert.deepEqual(await deliveries.list({ event: 'none' }, 10, { after: 0 }), { items: [], next: 5_000 });
  assert.equal((await deliveries.list({}, 10_000)).items.length, 5_000);
});
