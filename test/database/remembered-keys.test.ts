import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import pg from 'pg';
import { prune } from '../../src/inbox/dispatch/retention.ts';
import type { Inbox } from '../../src/inbox/inbox.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { LATER, LEASE_END } from '../support/claim-jobs.ts';
import { engines, postgresUrl, withoutPostgres } from '../support/databases.ts';
import { NOW, newDelivery } from '../support/new-delivery.ts';

const DAY = 86_400_000;

async function end(inbox: Inbox, kind: 'done' | 'dead') {
  for (const job of await inbox.claim('t', 10_000, 'me', LEASE_END - LATER, { now: LATER })) {
    await inbox.settle(job, 'me', kind === 'done' ? { kind } : { kind, error: 'x' }, LATER);
  }
}

for (const [engine, open] of Object.entries(engines)) {
  describe(`remembered keys in ${engine}`, () => {
    test('a repeat is a duplicate after the removal, with the id of the first, and new when it is forgotten', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const first = newDelivery({ dedupKey: 'k\0', source: 's\0' });
      const repeat = () => newDelivery({ dedupKey: 'k\0', source: 's\0' });
      await inbox.append(first);
      await end(inbox, 'done');
      const rules = { inbox, maxAge: DAY, maxBytes: 0, dedupAge: 7 * DAY };
      assert.equal(await prune(rules, NOW + 2 * DAY), 1);
      assert.equal(await deliveries.find(first.id), undefined);

      await database.reopen?.();
      const later = database.current.inbox;
      assert.equal(await later.append(repeat()), 'duplicate');
      assert.equal(await later.idOf('s\0', 'k\0'), first.id);
      assert.equal((await later.backlog()).open, 0, 'the repeat has no jobs');
      assert.equal(await later.append(newDelivery({ dedupKey: 'k\0' })), 'stored', 'of another source');
      const now = { ...rules, inbox: later };
      await prune(now, NOW + 7 * DAY);
      assert.equal(await later.idOf('s\0', 'k\0'), first.id);
      await prune(now, NOW + 7 * DAY + 1);
      assert.equal(await later.idOf('s\0', 'k\0'), undefined);
      assert.equal(await later.append(repeat()), 'stored');
    });

    test('what was not handled is not remembered: dead, or without a handler', async () => {
      await using database = await open();
      const { inbox } = database.current;
      await inbox.append(newDelivery({ dedupKey: 'dead' }));
      await end(inbox, 'dead');
      await inbox.append(newDelivery({ dedupKey: 'unhandled', jobs: [] }));
      const rules = { inbox, maxAge: DAY, maxBytes: 0, dedupAge: 7 * DAY };
      assert.equal(await prune(rules, NOW + 2 * DAY), 2);
      for (const dedupKey of ['dead', 'unhandled']) {
        assert.equal(await inbox.append(newDelivery({ dedupKey })), 'stored', dedupKey);
      }
    });

    test('it is off with 0, and works for the limit of the size', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const remove = async (dedupAge: number) => {
        await inbox.append(newDelivery({ dedupKey: 'k' }));
        await end(inbox, 'done');
        await prune({ inbox, maxAge: 0, maxBytes: 1, dedupAge }, NOW + DAY);
        return inbox.idOf('', 'k');
      };
      assert.equal(await remove(0), undefined);
      assert.notEqual(await remove(2 * DAY), undefined);
      await prune({ inbox, maxAge: DAY, maxBytes: 0, dedupAge: 0 }, NOW + DAY);
      assert.equal(await inbox.idOf('', 'k'), undefined, 'forgotten once it is off');
    });

    test('keys are forgotten in small steps, the first ones beyond the limit too', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const count = 700;
      const given = Array.from({ length: count }, (_, i) => newDelivery({ dedupKey: `k${i}` }));
      await Promise.all(given.map((each) => inbox.append(each)));
      await end(inbox, 'done');
      await prune({ inbox, maxAge: DAY, maxBytes: 0, dedupAge: 9 * DAY }, NOW + 2 * DAY);
      const steps = async (before: number, max: number) => {
        let removed = 0;
        for (let i = 0; i < 20; i++) {
          const step = await inbox.forgetKeys(before, max);
          assert.ok(step.removed <= 512);
          removed += step.removed;
          if (step.isLast) return removed;
        }
        throw new Error('steps come to an end');
      };
      assert.equal(await steps(NOW, count), 0);
      assert.equal(await steps(NOW, count - 300), 300);
      assert.equal(await steps(NOW + 1, count), 400);
    });
  });
}

test('a repeat during the removal is a duplicate on PostgreSQL', {
  skip: withoutPostgres ?? false,
}, async () => {
  const url = await postgresUrl();
  await using database = await openDatabase(url);
  const { inbox } = database;
  const first = newDelivery({ dedupKey: 'k', jobs: [] });
  await inbox.append(first);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`BEGIN;
      INSERT INTO remembered_keys (source, dedup_key, id, received_at)
        SELECT source, dedup_key, id, received_at FROM deliveries;
      DELETE FROM deliveries`);
    // It would wait for the removal, and be stored after it.
    const repeat = inbox.append(newDelivery({ dedupKey: 'k', jobs: [] }));
    assert.equal(await repeat, 'duplicate');
    await client.query('COMMIT');
    assert.equal(await inbox.idOf('', 'k'), first.id);
  } finally {
    await client.end();
  }
});
