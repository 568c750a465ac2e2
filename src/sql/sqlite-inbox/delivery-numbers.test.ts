import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { newDelivery } from '../../../test/support/new-delivery.ts';
import { rounds } from '../../../test/support/proof-settings.ts';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { openSqlite } from '../sqlite/open.ts';

const OLD = 1;
const NEW = 1_000;

const step = fc.oneof(
  fc.record({
    kind: fc.constant('append' as const),
    receivedAt: fc.constantFrom(OLD, OLD, NEW),
    known: fc.boolean(),
  }),
  fc.record({ kind: fc.constant('prune' as const) }),
  fc.record({ kind: fc.constant('wait' as const) }),
  fc.record({ kind: fc.constant('reopen' as const) }),
);

test('the number of a removed delivery is never given to another one, whatever is removed meanwhile', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 40, size: 'max' }), async (steps) => {
      await using folder = await temporaryFolder();
      const file = join(folder.path, 'test.db');
      let database = openSqlite(file);
      let id = 0;
      let highest = 0;
      let underWay: Promise<unknown>[] = [];
      const settle = async () => {
        await Promise.all(underWay);
        underWay = [];
        const seqs = (await database.deliveries.list({}, 1_000, { after: 0 })).items.map(({ seq }) => seq);
        assert.deepEqual(
          seqs,
          [...new Set(seqs)].sort((a, b) => a - b),
        );
        highest = Math.max(highest, ...seqs);
      };
      try {
        for (const each of steps) {
          if (each.kind === 'append') {
            const before = highest;
            const delivery = newDelivery({
              id: String(id++).padStart(8, '0'),
              receivedAt: each.receivedAt,
              dedupKey: each.known ? 'known' : null,
              jobs: [],
            });
            const stored = database.inbox.append(delivery).then(async (appended) => {
              const found = await database.deliveries.find(delivery.id);
              // It may be gone already.
              if (appended !== 'stored' || found === undefined) return;
              assert.ok(found.seq > before, `${found.seq} behind ${before}`);
              highest = Math.max(highest, found.seq);
            });
            underWay.push(stored);
          } else if (each.kind === 'prune') {
            // What is new has a date in the future, so it is passed over.
            underWay.push(database.inbox.prune({ kind: 'unhandled', before: NEW, now: OLD }));
          } else {
            await settle();
            if (each.kind === 'wait') continue;
            await database[Symbol.asyncDispose]();
            database = openSqlite(file);
          }
        }
        await settle();
      } finally {
        await database[Symbol.asyncDispose]();
      }
    }),
    { numRuns: rounds(6) },
  );
});
