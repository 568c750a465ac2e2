import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import fc from 'fast-check';
import { newDelivery } from '../../../test/support/new-delivery.ts';
import { rounds } from '../../../test/support/proof-settings.ts';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { migrate } from '../sqlite/migrate.ts';
import { openSqlite } from '../sqlite/open.ts';
import { ADD_ZONES, IDS_BETWEEN, PRUNE_ZONE, SEQ_OF_ID, ZONE, ZONE_OF } from './delivery-zones.ts';

function openDeliveries() {
  const db = new DatabaseSync(':memory:');
  migrate(db);
  const insert = db.prepare(
    `INSERT INTO deliveries (seq, id, source, data_pointer, body, received_at) VALUES (?, ?, '', '', x'', 0)`,
  );
  const remove = db.prepare('DELETE FROM deliveries WHERE seq IN (SELECT value FROM json_each(?))');
  const [addZones, zoneOf, pruneZone, seqOfId, between] = [
    ADD_ZONES,
    ZONE_OF,
    PRUNE_ZONE,
    SEQ_OF_ID,
    IDS_BETWEEN,
  ].map((sql) => db.prepare(sql));
  return {
    insert: (seq: number, id: string) => void insert.run(seq, id),
    addZones: () => void addZones?.run(),
    prune(seqs: readonly number[]) {
      remove.run(JSON.stringify(seqs));
      for (const seq of seqs) {
        const zone = zoneOf?.get(seq);
        if (zone !== undefined) pruneZone?.run(Number(zone.last_seq));
      }
    },
    find: (id: string) => seqOfId?.get(id)?.seq,
    begun: (start: string) => between?.all(start, `${start}~`, 1_000).map(({ id }) => String(id)),
    zones: () => Number(db.prepare('SELECT count(*) AS n FROM delivery_zones').get()?.n),
    [Symbol.dispose]: () => db.close(),
  };
}

const step = fc.oneof(
  // Ids mostly grow, as they are made; after the clock was set, or a move, they need not.
  fc.record({
    kind: fc.constant('insert' as const),
    gap: fc.constantFrom(1, 1, 2, ZONE / 2, ZONE * 3),
    id: fc.option(fc.nat(999), { freq: 3, nil: undefined }),
  }),
  fc.record({ kind: fc.constant('zones' as const) }),
  fc.record({ kind: fc.constant('prune' as const), of: fc.array(fc.nat(60), { minLength: 1 }) }),
);

test('whatever was stored and removed, each delivery is found by its id and no other one is, and no empty zone stays', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      using deliveries = openDeliveries();
      const stored = new Map<number, string>();
      let last = 0;
      for (const each of steps) {
        if (each.kind === 'insert') {
          last += each.gap;
          const id = `${String(each.id ?? 1_000 + last).padStart(8, '0')}-${last}`;
          deliveries.insert(last, id);
          stored.set(last, id);
        } else if (each.kind === 'zones') deliveries.addZones();
        else {
          const seqs = [...stored.keys()].filter((_, i) => each.of.includes(i));
          deliveries.prune(seqs);
          for (const seq of seqs) stored.delete(seq);
        }
      }
      for (const [seq, id] of stored) {
        assert.equal(deliveries.find(id), seq);
        for (const start of [id.slice(0, 7), id.slice(0, 9)]) {
          const expected = [...stored.values()].filter((each) => each.startsWith(start));
          assert.deepEqual(deliveries.begun(start)?.sort(), expected.sort());
        }
      }
      for (const id of ['', '00001000-0', '~']) assert.equal(deliveries.find(id), undefined);
      deliveries.prune([...stored.keys()]);
      assert.equal(deliveries.zones(), 0);
    }),
    { numRuns: rounds(500) },
  );
});

test('the inbox adds its deliveries to zones, and those of an earlier process to the first one', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'test.db');
  const ids: string[] = [];
  const store = async (count: number) => {
    await using database = openSqlite(file);
    const made = Array.from({ length: count }, (_, i) =>
      newDelivery({ id: `${ids.length + i}`.padStart(8, '0') }),
    );
    await Promise.all(made.map((delivery) => database.inbox.append(delivery)));
    ids.push(...made.map(({ id }) => id));
    for (const id of ids) assert.equal((await database.deliveries.find(id))?.id, id);
  };
  await store(2 * ZONE + 1);
  await store(1);
  using db = new DatabaseSync(file);
  const zones = db.prepare('SELECT first_seq, last_seq FROM delivery_zones ORDER BY last_seq').all();
  assert.deepEqual(
    zones.map((zone) => ({ ...zone })),
    [
      { first_seq: 1, last_seq: ZONE },
      { first_seq: ZONE + 1, last_seq: 2 * ZONE },
      { first_seq: 2 * ZONE + 1, last_seq: 2 * ZONE + 1 },
    ],
  );
  // Nothing is looked at beyond the zones and the deliveries between two of them.
  for (const text of [SEQ_OF_ID, IDS_BETWEEN]) {
    const plan = db.prepare(`EXPLAIN QUERY PLAN ${text}`).all();
    const [tail, zone] = plan
      .map(({ detail }) => String(detail))
      .filter((detail) => / deliveries/.test(detail));
    assert.match(tail ?? '', /USING INTEGER PRIMARY KEY \(rowid>\?\)/);
    assert.match(zone ?? '', /USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)/);
  }
});
