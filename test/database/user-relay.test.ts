import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { NewDelivery } from '../../src/inbox/delivery.ts';
import { DeliveryIds } from '../../src/inbox/delivery.ts';
import type { Database } from '../../src/sql/database.ts';
import { engines } from '../support/databases.ts';
import { LIBRARY } from '../support/relations/relations.ts';
import { eventsUntil } from '../support/user-events.ts';

const ids = new DeliveryIds();
const userOf = (name: string) => ({ name, email: `${name}@x` });

function delivery(): NewDelivery {
  const now = Date.now();
  const facts = { source: 'portico:users', event: 'user.created', dataPointer: '/data', dedupKey: null };
  const body = Buffer.from('{}');
  const jobs = [{ target: 't', orderKey: '1' }];
  return { id: ids.next(now), ...facts, contentType: 'application/json', body, receivedAt: now, jobs };
}

const stored = async ({ deliveries }: Database) => (await deliveries.list({}, 100)).items.length;

for (const [engine, open] of Object.entries(engines)) {
  describe(`the relay of changes of users on ${engine}`, () => {
    test('moves with the deliveries; from another place nothing is stored', async () => {
      await using store = await open();
      const { relay } = store.current.inbox;
      const [a, b, c] = [
        { position: 5, at: 1_000 },
        { position: 8, at: 1_001 },
        { position: 9, at: 1_002 },
      ] as const;
      assert.equal(await relay.move(a, b, [delivery()]), false, 'it has not begun');
      assert.deepEqual({ ...(await relay.begin(a)) }, a);
      assert.deepEqual({ ...(await relay.begin(c)) }, a, 'it has begun');
      assert.equal(await relay.move(a, b, [delivery(), delivery()]), true);
      assert.equal(await relay.move(a, c, [delivery()]), false);
      assert.equal(await relay.move({ ...b, at: 7 }, c, [delivery()]), false);
      assert.equal(await relay.move(a, c, []), false);
      assert.equal(await stored(store.current), 2);
      await store.reopen?.();
      const again = store.current.inbox.relay;
      assert.deepEqual({ ...(await again.begin(a)) }, b);
      assert.equal(await again.move(b, c, []), true);
      const moves = await Promise.all(Array.from({ length: 8 }, () => again.move(c, a, [delivery()])));
      assert.equal(moves.filter(Boolean).length, 1);
      assert.equal(await stored(store.current), 3);
      await again.end();
      assert.equal(await again.move(a, c, [delivery()]), false);
      assert.deepEqual({ ...(await again.begin(b)) }, b);
    });

    test('stays where it is if a delivery cannot be stored, also that of relations', async () => {
      await using store = await open();
      await store.current.openRelations(LIBRARY);
      const [from, to] = [
        { position: 5, at: 1_000 },
        { position: 8, at: 1_001 },
      ] as const;
      for (const relay of [store.current.inbox.relay, store.current.inbox.changeRelay]) {
        await relay.begin(from);
        const broken = { ...delivery(), source: null as unknown as string };
        await assert.rejects(relay.move(from, to, [delivery(), broken]));
        assert.deepEqual({ ...(await relay.begin(to)) }, from);
        assert.equal(await relay.move(from, to, [delivery()]), true);
      }
      assert.equal(await stored(store.current), 2);
    });

    test('events that it has not come to are kept while it is moved', async () => {
      await using store = await open();
      const { users, userFeed, userEvents, inbox } = store.current;
      const { start } = await userFeed.follow();
      await inbox.relay.begin(start);
      await Promise.all(Array.from({ length: 30 }, (_, i) => users.create(userOf(`n${i}`))));
      const prune = async (before: number) => {
        while (await userEvents.prune(5, before, 7));
      };
      await prune(0);
      const follower = await userFeed.follow(start);
      const all = await eventsUntil(follower, 30);
      const place = { position: all[9]?.position ?? 0, at: all[9]?.at ?? 0 };
      assert.equal(await inbox.relay.move(start, place, []), true);
      await prune(0);
      assert.deepEqual(await eventsUntil(await userFeed.follow(place), 20), all.slice(10));
      await assert.rejects(userFeed.follow(start), { code: 'EVENTS_GONE' });
      // Nobody has moved it for longer than events are kept.
      await prune(Date.now() + 60_000);
      await assert.rejects(userFeed.follow(place), { code: 'EVENTS_GONE' });
    });
  });
}
