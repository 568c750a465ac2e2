import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { NewDelivery } from '../../src/inbox/delivery.ts';
import type { Inbox, PruneRule } from '../../src/inbox/inbox.ts';
import { LATER, LEASE_END } from '../support/claim-jobs.ts';
import { engines } from '../support/databases.ts';
import { NOW, newDelivery } from '../support/new-delivery.ts';

const ended = (before: number) => ({ kind: 'ended', before }) as const;
const unhandled = (before: number) => ({ kind: 'unhandled', before, now: before + 9 }) as const;
const excess = (before: number, maxBytes = 0) => ({ kind: 'excess', before, maxBytes }) as const;
const sizeOf = (deliveries: readonly NewDelivery[]) =>
  deliveries.reduce((sum, { body }) => sum + body.byteLength + 500, 0);

/** Settles the jobs of a target at a time. */
async function settle(inbox: Inbox, target: string, at: number, kind: 'done' | 'dead' = 'done') {
  const claimed = await inbox.claim(target, 10_000, 'me', LEASE_END - LATER, { now: LATER });
  const outcome = kind === 'done' ? { kind } : { kind, error: 'x' };
  const settled = await Promise.all(claimed.map((job) => inbox.settle(job, 'me', outcome, at)));
  assert.ok(settled.every(Boolean));
}

/** Takes the steps of a rule to the last one. */
async function pruneAll(inbox: Inbox, rule: PruneRule) {
  let [removed, looked] = [0, 0];
  for (let steps = 1; ; steps++) {
    assert.ok(steps < 2_000, 'steps come to an end');
    const step = await inbox.prune(rule);
    assert.ok(step.looked <= 256, 'a step looks at a bounded number of entries');
    removed += step.removed;
    looked += step.looked;
    if (step.isLast) return { removed, looked };
  }
}

const jobs = (...targets: readonly string[]) => targets.map((target) => ({ target, orderKey: null }));

for (const [engine, open] of Object.entries(engines)) {
  describe(`retention in ${engine}`, () => {
    test('each rule removes its own deliveries, and none removes an open one', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const [done, dead, other, waiting] = ['done', 'dead', 'other', 'waiting'].map((target) =>
        newDelivery({ jobs: jobs(target) }),
      );
      const none = newDelivery({ jobs: [] });
      for (const each of [done, dead, other, waiting, none]) await inbox.append(each as NewDelivery);
      const left = async () => (await deliveries.list({}, 10)).items.map(({ id }) => id).reverse();
      for (const target of ['done', 'other']) await settle(inbox, target, LATER);
      await settle(inbox, 'dead', LATER, 'dead');

      for (const rule of [ended(LATER), unhandled(NOW), excess(LATER), excess(LATER + 1, 1e9)]) {
        assert.equal((await pruneAll(inbox, rule)).removed, 0, rule.kind);
      }
      assert.equal((await pruneAll(inbox, excess(LATER + 1))).removed, 2);
      assert.deepEqual(await left(), [dead?.id, waiting?.id, none.id]);
      assert.equal((await pruneAll(inbox, ended(LATER + 1))).removed, 1);
      assert.equal((await pruneAll(inbox, unhandled(NOW + 1))).removed, 1);
      assert.deepEqual(await left(), [waiting?.id]);
    });

    test('a delivery goes when its last job has ended, whatever was looked at before', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const both = newDelivery({ jobs: jobs('t', 'u') });
      const retried = newDelivery({ jobs: jobs('v') });
      for (const each of [both, retried]) await inbox.append(each);
      await settle(inbox, 't', LATER);
      await settle(inbox, 'v', LATER, 'dead');
      assert.deepEqual(await pruneAll(inbox, excess(LATER + 1)), { removed: 0, looked: 2 });
      await settle(inbox, 'u', LATER + 10);
      assert.deepEqual(await pruneAll(inbox, ended(LATER + 10)), { removed: 1, looked: 2 }, 'the dead one');
      assert.ok(await deliveries.find(both.id));
      assert.deepEqual(await pruneAll(inbox, excess(LATER + 11)), { removed: 1, looked: 1 });
    });

    test('what stays is not looked at again, open deliveries never', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const append = (count: number, targets: readonly string[]) =>
        Promise.all(
          Array.from({ length: count }, () => inbox.append(newDelivery({ jobs: jobs(...targets) }))),
        );
      await append(700, ['waiting']);
      await append(300, ['dead']);
      await append(300, ['done', 'waiting too']);
      await append(300, ['done']);
      await settle(inbox, 'dead', LATER, 'dead');
      await settle(inbox, 'done', LATER);
      assert.deepEqual(await pruneAll(inbox, excess(LATER + 1)), { removed: 300, looked: 900 });
      assert.deepEqual(await pruneAll(inbox, excess(LATER + 2)), { removed: 0, looked: 0 });
      await database.reopen?.();
      assert.equal((await pruneAll(database.current.inbox, excess(LATER + 3))).looked, 0);
      assert.deepEqual(await pruneAll(database.current.inbox, ended(LATER + 3)), {
        removed: 300,
        looked: 600,
      });
      assert.equal((await pruneAll(database.current.inbox, unhandled(NOW + 1))).looked, 1_000);
      assert.equal((await pruneAll(database.current.inbox, unhandled(NOW + 2))).looked, 0);
    });

    test('a date in the future holds up nobody, and a clock that was set back hides nothing', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const future = newDelivery({ jobs: [], receivedAt: NOW + 1_000 });
      const past = newDelivery({ jobs: [] });
      for (const each of [future, past]) await inbox.append(each);
      assert.equal((await pruneAll(inbox, unhandled(NOW + 1))).removed, 1);
      assert.deepEqual((await deliveries.list({}, 9)).items[0]?.id, future.id);

      await inbox.append(newDelivery());
      await settle(inbox, 't', LATER);
      assert.equal((await pruneAll(inbox, excess(LATER + 1))).removed, 1);
      assert.equal((await pruneAll(inbox, excess(LATER - 100))).removed, 0);
      await inbox.append(newDelivery());
      await settle(inbox, 't', LATER - 50);
      assert.equal((await pruneAll(inbox, excess(LATER))).removed, 1);
    });

    test('the size is that of the deliveries, whatever else the database holds', async () => {
      await using database = await open();
      const given = Array.from({ length: 1_300 }, (_, i) =>
        newDelivery({ jobs: jobs(i % 3 === 0 ? 't' : 'u'), body: Buffer.alloc(i) }),
      );
      await Promise.all(given.map((each) => database.current.inbox.append(each)));
      for (let i = 0; i < 100; i++)
        await database.current.users.create({ name: 'n'.repeat(500), email: 'a@b' });
      assert.equal(await database.current.inbox.size(), sizeOf(given));
      await database.reopen?.();
      const { inbox } = database.current;
      assert.equal(await inbox.size(), sizeOf(given));
      await settle(inbox, 't', LATER);
      const last = newDelivery();
      await inbox.append(last);
      await pruneAll(inbox, ended(LATER + 1));
      const left = [...given.filter((_, i) => i % 3 !== 0), last];
      assert.equal(await inbox.size(), sizeOf(left));
      await settle(inbox, 'u', LATER + 9);
      await settle(inbox, 't', LATER + 9);
      await pruneAll(inbox, ended(LATER + 10));
      assert.equal(await inbox.size(), 0);
    });
  });
}
