import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { EventNames, NewDelivery, NewJob } from '../../src/inbox/delivery.ts';
import type { Outcome } from '../../src/inbox/inbox.ts';
import {
  ACTIONS,
  DELIVERY_STATUSES,
  type DeliveryFilter,
  type DeliveryLog,
  type DeliveryStatus,
  deliveryPages,
  type ReplayPlan,
} from '../../src/inbox/operations.ts';
import type { Database } from '../../src/sql/database.ts';
import { engines } from '../support/databases.ts';
import { NOW, newDelivery } from '../support/new-delivery.ts';
import { rounds } from '../support/proof-settings.ts';

const replayDelivery = (log: DeliveryLog, plan: ReplayPlan, id: string, now: number) =>
  ACTIONS.replay.act({ log, plan }, id, now);

/** Stores a delivery and brings it to a status. */
async function stored(
  { inbox, deliveries }: Database,
  status: DeliveryStatus,
  changes: Partial<NewDelivery> = {},
): Promise<NewDelivery> {
  // A target of its own, so that it is the one that is claimed.
  const target = randomUUIDv7();
  const one = newDelivery({ jobs: status === 'unhandled' ? [] : [{ target, orderKey: null }], ...changes });
  await inbox.append(one);
  if (status === 'unhandled' || status === 'pending') return one;
  if (status === 'discarded') {
    assert.equal(await deliveries.discard(one.id, NOW), true);
    return one;
  }
  const [job] = await inbox.claim(target, 1, 'me', 5_000, { now: NOW + 100 });
  assert.ok(job);
  if (status === 'done') await inbox.settle(job, 'me', { kind: 'done' }, NOW);
  if (status === 'dead') await inbox.settle(job, 'me', { kind: 'dead', error: 'E: no' }, NOW);
  return one;
}

async function all(
  database: Database,
  filter: DeliveryFilter,
  oldestFirst = false,
): Promise<readonly string[]> {
  const found: string[] = [];
  const cursor = oldestFirst ? { cursor: { after: 0 } } : {};
  for await (const { items } of deliveryPages(database.deliveries, filter, cursor)) {
    found.push(...items.map(({ id }) => id));
  }
  return found;
}

const byTarget = (a: { readonly target: string }, b: typeof a) => (a.target < b.target ? -1 : 1);

const countsOf = (known: readonly { readonly status: DeliveryStatus }[]) =>
  [...Map.groupBy(known, ({ status }) => status)].map(([status, found]) => [status, found.length]);

const targetsOf = async ({ deliveries }: Database, id: string) =>
  (await deliveries.find(id))?.jobs.map(({ target, status, attempts }) => [target, status, attempts]);

for (const [engine, open] of Object.entries(engines)) {
  describe(`delivery log in ${engine}`, () => {
    test('a text is found in the bodies, byte for byte', async () => {
      await using database = await open();
      const bodies = ['{"data":"Grüße 100%_x"}', '{"data":"gr"}', '\u0000\u00ff'];
      const ids: string[] = [];
      for (const body of bodies) {
        ids.push((await stored(database.current, 'unhandled', { body: Buffer.from(body, 'utf8') })).id);
      }
      const [first = '', second = ''] = ids;
      for (const [text, found] of [
        ['Grüße', [first]],
        ['100%_x', [first]],
        ['%', [first]],
        ['"data":"gr"', [second]],
        ['nowhere', []],
      ] as const) {
        assert.deepEqual(await all(database.current, { text }), found, text);
      }
      assert.deepEqual(await all(database.current, { text: 'data', status: 'unhandled' }, true), [
        first,
        second,
      ]);
    });

    test('a delivery is found by the target of any of its jobs', async () => {
      await using database = await open();
      const jobs: readonly NewJob[] = ['handler:a', 'forward:b'].map((target) => ({
        target,
        orderKey: null,
      }));
      const both = await stored(database.current, 'pending', { jobs });
      const one = await stored(database.current, 'pending', { jobs: jobs.slice(1) });
      await stored(database.current, 'unhandled');
      assert.deepEqual(await all(database.current, { target: 'handler:a' }), [both.id]);
      assert.deepEqual(await all(database.current, { target: 'forward:b' }), [one.id, both.id]);
      assert.deepEqual(await all(database.current, { target: 'forward:b', status: 'dead' }), []);
      const { counts } = await database.current.deliveries.count({ target: 'forward:b' });
      assert.deepEqual(counts, { pending: 2 });
    });

    test('every status has its deliveries', async () => {
      await using database = await open();
      const byStatus = new Map<DeliveryStatus, string>();
      for (const status of DELIVERY_STATUSES) {
        byStatus.set(status, (await stored(database.current, status)).id);
      }
      for (const [status, id] of byStatus) {
        assert.deepEqual(await all(database.current, { status }), [id], status);
        assert.equal((await database.current.deliveries.find(id))?.status, status);
      }
      assert.deepEqual(await all(database.current, {}), [...byStatus.values()].reverse());
    });

    test('a page ends when the names of its events have 256 KiB, and the list is whole', async () => {
      await using database = await open();
      const { deliveries, inbox } = database.current;
      const sizes = [1, 100_000, 100_000, 300_000, 1, 1, 100_000, 100_000, 100_000, 1];
      for (const [i, size] of sizes.entries()) {
        await inbox.append(newDelivery({ id: `delivery ${i}`, event: String(i % 10).repeat(size) }));
      }
      for (const forward of [true, false]) {
        const ids: string[] = [];
        const counts: number[] = [];
        let at = forward ? 0 : Number.MAX_SAFE_INTEGER;
        for (;;) {
          const { items, next } = await deliveries.list({}, 1_000, forward ? { after: at } : { before: at });
          ids.push(...items.map(({ id }) => id));
          counts.push(items.length);
          if (next === undefined) break;
          at = next;
        }
        const expected = sizes.map((_, i) => `delivery ${i}`);
        assert.deepEqual(ids, forward ? expected : expected.reverse());
        // Each page ends behind the delivery with which there are too many bytes.
        assert.deepEqual(counts, forward ? [4, 5, 1] : [4, 3, 3]);
      }
    });

    test('a list in pages of any size and direction is the whole list, filtered', async () => {
      await using database = await open();
      const { deliveries } = database.current;
      const known: (NewDelivery & { readonly status: DeliveryStatus })[] = [];
      for (let i = 0; i < 40; i++) {
        const status = DELIVERY_STATUSES[i % DELIVERY_STATUSES.length] ?? 'done';
        const event = i % 7 === 0 ? null : i % 2 === 0 ? 'even' : 'odd';
        const source = i % 3 === 0 ? 'gh' : '';
        // Not in the order of arrival: a clock can be put back.
        const receivedAt = NOW + ((i * 7) % 40);
        known.push({
          ...(await stored(database.current, status, { event, source, receivedAt })),
          status,
        });
      }
      const filters = fc.record(
        {
          status: fc.constantFrom(...DELIVERY_STATUSES),
          event: fc.constantFrom('even', 'odd', 'none'),
          source: fc.constantFrom('', 'gh', 'x'),
          since: fc.integer({ min: NOW - 1, max: NOW + 41 }),
          until: fc.integer({ min: NOW - 1, max: NOW + 41 }),
        },
        { requiredKeys: [] },
      );
      await fc.assert(
        fc.asyncProperty(
          filters,
          fc.integer({ min: 1, max: 45 }),
          fc.boolean(),
          async (filter, size, forward) => {
            const { status, event, source, since, until } = filter;
            const expected = known.filter(
              (each) =>
                (status === undefined || each.status === status) &&
                (event === undefined || each.event === event) &&
                (source === undefined || each.source === source) &&
                (since === undefined || each.receivedAt >= since) &&
                (until === undefined || each.receivedAt < until),
            );
            if (!forward) expected.reverse();
            const { counts, next } = await deliveries.count(filter);
            assert.equal(next, undefined);
            assert.deepEqual(counts, Object.fromEntries(countsOf(expected)));
            const found: string[] = [];
            let at: number | undefined = forward ? 0 : Number.MAX_SAFE_INTEGER;
            while (at !== undefined) {
              const cursor: { after: number } | { before: number } = forward ? { after: at } : { before: at };
              const page = await deliveries.list(filter, size, cursor);
              assert.ok(page.items.length <= size);
              found.push(...page.items.map(({ id }) => id));
              at = page.next;
            }
            assert.deepEqual(
              found,
              expected.map(({ id }) => id),
            );
          },
        ),
        { numRuns: rounds(60) },
      );
    });

    test('what fails: dead deliveries but those that are still tried, and the targets with their errors', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      assert.deepEqual(await deliveries.failing(), { dead: 0, targets: [] });
      const jobs: readonly NewJob[] = ['a', 'b'].map((target) => ({ target, orderKey: null }));
      const settle = async (target: string, outcome: Outcome, now: number) => {
        const [job] = await inbox.claim(target, 1, 'me', 5_000, { now: NOW + 100 });
        assert.ok(job);
        await inbox.settle(job, 'me', outcome, now);
      };
      await stored(database.current, 'pending', { jobs });
      await settle('a', { kind: 'dead', error: 'E: first' }, NOW + 2);
      const first = { target: 'a', dead: 1, retrying: 0, lastDeadAt: NOW + 2, error: 'E: first' };
      // The delivery has an open job: its status is pending.
      assert.deepEqual(await deliveries.failing(), { dead: 0, targets: [first] });
      await settle('b', { kind: 'retry', error: 'E: again', wait: 1 }, NOW + 3);
      const again = { target: 'b', dead: 0, retrying: 1, lastDeadAt: null, error: 'E: again' };
      assert.deepEqual((await deliveries.failing()).targets.toSorted(byTarget), [first, again]);
      await settle('b', { kind: 'dead', error: 'x'.repeat(400) }, NOW + 4);
      const died = { target: 'b', dead: 1, retrying: 0, lastDeadAt: NOW + 4, error: 'x'.repeat(300) };
      assert.deepEqual(await deliveries.failing(), { dead: 1, targets: [died, first] });
      const [summary] = (await deliveries.list({}, 1)).items;
      assert.equal(summary?.error, 'x'.repeat(300));
      await stored(database.current, 'dead');
      await stored(database.current, 'done');
      const { dead, targets } = await deliveries.failing();
      assert.deepEqual([dead, targets.length], [2, 3]);
      await Promise.all((await all(database.current, {})).map((id) => deliveries.discard(id, NOW)));
      assert.deepEqual(await deliveries.failing(), { dead: 0, targets: [] });
    });

    test('what a list tells of a delivery', async () => {
      await using database = await open();
      const body = Buffer.from('{"event":"e","data":"é"}');
      const { id } = await stored(database.current, 'dead', { body, source: 'gh' });
      const { items, next } = await database.current.deliveries.list({}, 10);
      assert.equal(next, undefined);
      const [{ seq, ...rest } = { seq: 0 }] = items;
      assert.ok(seq > 0);
      assert.deepEqual(rest, {
        id,
        source: 'gh',
        event: 'e',
        senderEvent: null,
        status: 'dead',
        receivedAt: NOW,
        attempts: 1,
        size: body.length,
        plannedAt: null,
        error: 'E: no',
      });
    });

    test('a delivery with two jobs: what died is replayed alone, then all of it', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const jobs: readonly NewJob[] = ['a', 'b'].map((target) => ({ target, orderKey: null }));
      const { id } = await stored(database.current, 'pending', { jobs });
      const plan = () => jobs;
      const replay = () => replayDelivery(deliveries, plan, id, NOW);
      const settle = async (target: string, kind: 'done' | 'dead') => {
        const [job] = await inbox.claim(target, 1, 'me', 5_000, { now: NOW + 1 });
        assert.ok(job);
        await inbox.settle(job, 'me', kind === 'done' ? { kind } : { kind, error: 'E: no' }, NOW);
      };
      assert.equal(await replay(), 'open');
      await settle('a', 'done');
      assert.equal(await replay(), 'open');
      await settle('b', 'dead');
      assert.deepEqual(await targetsOf(database.current, id), [
        ['a', 'done', 1],
        ['b', 'dead', 1],
      ]);
      assert.equal(await replay(), 'replayed');
      assert.deepEqual(await targetsOf(database.current, id), [
        ['a', 'done', 1],
        ['b', 'pending', 0],
      ]);
      assert.equal((await deliveries.find(id))?.jobs[1]?.error, null);
      await settle('b', 'done');
      assert.equal(await replay(), 'replayed');
      assert.deepEqual(await targetsOf(database.current, id), [
        ['a', 'pending', 0],
        ['b', 'pending', 0],
      ]);
    });

    test('nothing is opened beside what is open, even when the log itself is asked', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const jobs: readonly NewJob[] = ['a', 'b'].map((target) => ({ target, orderKey: null }));
      const { id } = await stored(database.current, 'pending', { jobs });
      const [job] = await inbox.claim('a', 1, 'me', 5_000, { now: NOW + 1 });
      assert.ok(job);
      await inbox.settle(job, 'me', { kind: 'done' }, NOW);
      assert.equal(await deliveries.replay(id, jobs, NOW), false);
      assert.deepEqual(await targetsOf(database.current, id), [
        ['a', 'done', 1],
        ['b', 'pending', 0],
      ]);
    });

    test('an unhandled delivery gets the jobs that it would get now, with their order', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const { id } = await stored(database.current, 'unhandled', {
        body: Buffer.from('{"event":"late","data":{"key":7}}'),
        event: 'late',
      });
      assert.equal(await replayDelivery(deliveries, () => [], id, NOW), 'no-handler');
      const plan = ({ event }: { readonly event: string | null }, body: unknown) => [
        { target: `handler:${event}`, orderKey: JSON.stringify(Object(body).data.key) },
        { target: 'forward:x', orderKey: null },
      ];
      assert.equal(await replayDelivery(deliveries, plan, id, NOW), 'replayed');
      assert.deepEqual(await targetsOf(database.current, id), [
        ['handler:late', 'pending', 0],
        ['forward:x', 'pending', 0],
      ]);
      // A second one with the same key waits for the first.
      const second = await stored(database.current, 'unhandled', {
        body: Buffer.from('{"event":"late","data":{"key":7}}'),
        event: 'late',
      });
      assert.equal(await replayDelivery(deliveries, plan, second.id, NOW), 'replayed');
      const claimed = await inbox.claim('handler:late', 10, 'me', 5_000, { now: NOW + 1 });
      assert.deepEqual(
        claimed.map((job) => job.delivery.id),
        [id],
      );
    });

    test('a job whose target is gone stays as it is', async () => {
      await using database = await open();
      const { deliveries } = database.current;
      const { id } = await stored(database.current, 'dead');
      const before = await targetsOf(database.current, id);
      assert.equal(
        await replayDelivery(deliveries, () => [{ target: 'other', orderKey: null }], id, NOW),
        'no-handler',
      );
      assert.deepEqual(await targetsOf(database.current, id), before);
    });

    test('an event is known by both of its names, wherever it is read, and found by either', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const names = { event: 'new\0commit', senderEvent: 'pu\u0010sh' };
      const jobs = [{ target: 'names', orderKey: 'key' }];
      const renamed = [newDelivery({ ...names, jobs }), newDelivery({ ...names, jobs })];
      for (const delivery of renamed) await inbox.append(delivery);
      const other = await stored(database.current, 'unhandled', { event: names.senderEvent });
      const none = await stored(database.current, 'unhandled', { event: null });

      const namesOf = ({ event, senderEvent = null }: EventNames) => ({ event, senderEvent });
      const [job] = await inbox.claim('names', 1, 'me', 5_000, { now: NOW + 100 });
      assert.ok(job);
      assert.deepEqual(namesOf(job.delivery), names);
      const end = { lease: 5_000, maxBytes: 1_000_000 };
      const { next } = await inbox.finish(job, 'me', { kind: 'done' }, end, NOW + 100);
      assert.deepEqual(next && [next.delivery.id, namesOf(next.delivery)], [renamed[1]?.id, names]);
      assert.deepEqual(namesOf((await deliveries.find(renamed[0]?.id ?? '')) ?? other), names);
      assert.deepEqual(namesOf((await deliveries.find(other.id)) ?? none), {
        event: names.senderEvent,
        senderEvent: null,
      });
      const { items } = await deliveries.list({}, 10);
      assert.deepEqual(items.map(namesOf), [
        { event: null, senderEvent: null },
        { event: names.senderEvent, senderEvent: null },
        names,
        names,
      ]);
      const both = renamed.map(({ id }) => id).toReversed();
      assert.deepEqual(await all(database.current, { event: names.event }), both);
      assert.deepEqual(await all(database.current, { event: names.senderEvent }), [other.id, ...both]);
      assert.deepEqual(await all(database.current, { event: 'new' }), []);
    });

    test('a job of a handler goes to the one that has its place now, with its history and the order there', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const now = { now: NOW + 100 };
      const trace = { duration: 7, answer: null, kept: 20 };
      const jobs = ['handler:new_commit', 'forward:x'].map((target) => ({ target, orderKey: null }));
      const ids: string[] = [];
      for (const kind of ['done', 'dead'] as const) {
        const { id } = await stored(database.current, 'pending', { event: 'new_commit', jobs });
        ids.push(id);
        const [job] = await inbox.claim('handler:new_commit', 1, 'me', 5_000, now);
        assert.ok(job);
        const outcome = kind === 'done' ? { kind, trace } : { kind, error: 'E: no', trace };
        assert.equal(await inbox.settle(job, 'me', outcome, NOW + 107), true);
        const [sent] = await inbox.claim('forward:x', 1, 'me', 5_000, now);
        assert.ok(sent);
        assert.equal(await inbox.settle(sent, 'me', { kind: 'done' }, NOW + 107), true);
      }
      const plan = () => [
        { target: 'handler:push', orderKey: 'key' },
        { target: 'forward:x', orderKey: null },
      ];
      for (const id of ids) assert.equal(await replayDelivery(deliveries, plan, id, NOW + 200), 'replayed');
      const [done = '', dead = ''] = ids;
      assert.deepEqual(await targetsOf(database.current, done), [
        ['handler:push', 'pending', 0],
        ['forward:x', 'pending', 0],
      ]);
      // What was not dead stays done.
      assert.deepEqual(await targetsOf(database.current, dead), [
        ['handler:push', 'pending', 0],
        ['forward:x', 'done', 1],
      ]);
      for (const id of ids) {
        const [job] = (await deliveries.find(id))?.jobs ?? [];
        assert.deepEqual(
          job?.history.map(({ outcome }) => outcome),
          [id === done ? 'done' : 'dead'],
        );
      }
      // The key of the new handler's order holds, one after the other.
      const claim = () => inbox.claim('handler:push', 10, 'me', 5_000, { now: NOW + 300 });
      assert.deepEqual(
        (await claim()).map(({ delivery, ordered }) => [delivery.id, ordered]),
        [[done, true]],
      );
      // Nothing changes beside what is open.
      assert.equal(
        await deliveries.replay(
          done,
          [{ target: 'handler:x', orderKey: null, replaces: 'handler:push' }],
          NOW,
        ),
        false,
      );
      assert.equal((await targetsOf(database.current, done))?.[0]?.[0], 'handler:push');
    });

    test('discarding ends what is open or dead, and fences off its lease', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const discard = (id: string) => ACTIONS.discard.act({ log: deliveries, plan: () => [] }, id, NOW);
      const held = await stored(database.current, 'pending', { jobs: [{ target: 't', orderKey: null }] });
      const [job] = await inbox.claim('t', 1, 'me', 5_000, { now: NOW + 1 });
      assert.ok(job);
      assert.equal(await discard(held.id), 'discarded');
      assert.equal(await inbox.settle(job, 'me', { kind: 'done' }, NOW), false);
      assert.equal((await deliveries.find(held.id))?.status, 'discarded');
      assert.equal(await discard(held.id), 'settled');
      assert.equal(await discard((await stored(database.current, 'dead')).id), 'discarded');
      assert.equal(await discard((await stored(database.current, 'done')).id), 'settled');
      assert.equal(await discard((await stored(database.current, 'unhandled')).id), 'settled');
      assert.equal(await discard(randomUUIDv7()), 'not-found');
      assert.equal(await replayDelivery(deliveries, () => [], randomUUIDv7(), NOW), 'not-found');
    });

    test('the only one of many is found, in both directions', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const rare = await stored(database.current, 'unhandled', { event: 'rare' });
      for (let i = 0; i < 12; i++)
        await Promise.all(Array.from({ length: 500 }, () => inbox.append(newDelivery({ jobs: [] }))));
      assert.deepEqual(await all(database.current, { event: 'rare' }), [rare.id]);
      assert.deepEqual(await all(database.current, { event: 'rare' }, true), [rare.id]);
      assert.equal((await all(database.current, {})).length, 6_001);
    });
  });
}
