import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { UserEvent } from '../../src/relations/events.ts';
import { EventRetention } from '../../src/sql/event-retention.ts';
import { engines } from '../support/databases.ts';
import { eventsUntil, followAll, positionOf } from '../support/user-events.ts';

const ANY = { versions: undefined, before: undefined };
const userOf = (name: string) => ({ name, email: `${name}@x` });

/** The type and the user of each event. */
const told = (events: readonly UserEvent[]) =>
  events.map(({ type, json }) => `${type} ${JSON.parse(json).id} ${JSON.parse(json).name}`);

for (const [engine, open] of Object.entries(engines)) {
  describe(`events of users on ${engine}`, () => {
    test('every kind of write is told once, in order, with the user', async () => {
      await using store = await open();
      const { users, userFeed } = store.current;
      const events = await userFeed.follow();
      const a = await users.create(userOf('a'), 1_000);
      const key = { key: 'k', fingerprint: 'f', keptFor: 60_000 };
      await users.createOnce(userOf('b'), key);
      await users.createOnce(userOf('b'), key);
      await users.update(a, userOf('a2'));
      const changed = await users.change(a, { name: 'a3', condition: ANY });
      await users.change(a, { name: 'not', condition: { versions: [5], before: undefined } });
      await users.update(99, userOf('nobody'));
      await users.remove(99);
      await users.remove(a);
      await users.removeIf(a + 1, ANY);
      const found = await eventsUntil(events, 6);
      assert.deepEqual(told(found), [
        'created 1 a',
        'created 2 b',
        'updated 1 a2',
        'updated 1 a3',
        'deleted 1 a3',
        'deleted 2 b',
      ]);
      assert.equal(found[0]?.json, '{"id":1,"name":"a","email":"a@x"}');
      assert.equal(found[0]?.at, 1_000, 'the version of the user');
      assert.equal(changed.is === 'changed' && changed.version, found[3]?.at);
      await events.return();
      assert.equal(userFeed.followers, 0);
    });

    test('behind each event come all the later ones, after a restart too', async () => {
      await using store = await open();
      const first = await store.current.userFeed.follow();
      for (let i = 0; i < 450; i++) await store.current.users.create(userOf(`n${i}`));
      const all = await eventsUntil(first, 450);
      await store.reopen?.();
      for (const from of [first.start, all[0], all[220], all[448]]) {
        const rest = await eventsUntil(
          await store.current.userFeed.follow(from),
          all.length - all.indexOf(from as UserEvent) - 1,
        );
        assert.deepEqual(rest, all.slice(all.indexOf(from as UserEvent) + 1));
      }
      const last = await store.current.userFeed.follow(all.at(-1));
      await store.current.users.create(userOf('after'));
      const [after] = await eventsUntil(last, 1);
      assert.deepEqual(told([after as UserEvent]), ['created 451 after']);
      await last.return();
      await first.return();
      // While nobody follows.
      const { users, userFeed } = store.current;
      const id = await users.create(userOf('x'));
      await users.create(userOf('y'));
      await users.update(id, userOf('x2'));
      await users.create(userOf('z'));
      await users.remove(id + 2);
      await users.remove(id);
      assert.deepEqual(told(await eventsUntil(await userFeed.follow(after), 6)), [
        'created 452 x',
        'created 453 y',
        'updated 452 x2',
        'created 454 z',
        'deleted 454 z',
        'deleted 452 x2',
      ]);
    });

    test('what was done at once is told so that its replay gives the users', async () => {
      await using store = await open();
      const { users, userFeed } = store.current;
      const events = await userFeed.follow();
      const ids = await Promise.all(Array.from({ length: 40 }, (_, i) => users.create(userOf(`n${i}`))));
      const writes = Array.from({ length: 400 }, (_, i) => {
        const id = ids[(i * 7) % ids.length] ?? 0;
        if (i % 29 === 0) return users.remove(id);
        return i % 3 === 0
          ? users.update(id, userOf(`u${i}`))
          : users.change(id, { name: `c${i}`, condition: ANY });
      });
      await Promise.all(writes);
      const end = await users.create(userOf('end'));
      const replayed = new Map<number, string>();
      for (const { type, json } of await followAll(events, `"id":${end},`)) {
        const { id } = JSON.parse(json);
        assert.equal(replayed.has(id), type !== 'created', json);
        if (type === 'deleted') replayed.delete(id);
        else replayed.set(id, json);
      }
      const page = await users.page('json', 0, Number.MAX_SAFE_INTEGER);
      assert.equal([...replayed.values()].join(), String(page.bytes.subarray(1)));
      await events.return();
    });

    test('an event of another database, of another moment or of no past is gone', async () => {
      await using store = await open();
      await using other = await open();
      const { start } = await other.current.userFeed.follow();
      const events = await store.current.userFeed.follow();
      await store.current.users.create(userOf('a'));
      const [event] = await eventsUntil(events, 1);
      const { position, at } = event as UserEvent;
      for (const from of [start, { position, at: at + 1 }, { position: position + 1, at }]) {
        // Two databases can begin in the same millisecond.
        if (from.position === events.start.position && from.at === events.start.at) continue;
        await assert.rejects(store.current.userFeed.follow(from), { code: 'EVENTS_GONE' });
      }
    });

    test('a follower that is returned while it waits ends, and one that lags reads what it needs', async () => {
      await using store = await open();
      const { users, userFeed } = store.current;
      const slow = await userFeed.follow();
      const quick = await userFeed.follow();
      await Promise.all(Array.from({ length: 1_500 }, (_, i) => users.create(userOf(`n${i}`))));
      const all = await eventsUntil(quick, 1_500);
      assert.deepEqual(await eventsUntil(slow, 1_500), all);
      const next = slow.next();
      await slow.return();
      assert.deepEqual(await next, { value: undefined, done: true });
      await quick.return();
    });

    test('the oldest events are removed by number and by age, the newest one never', async () => {
      await using store = await open();
      const { users, userFeed } = store.current;
      const log = store.current.userEvents;
      const events = await userFeed.follow();
      for (let i = 0; i < 30; i++) await users.create(userOf(`n${i}`), 1_000 + i);
      const all = await eventsUntil(events, 30);
      const lagging = await userFeed.follow(all[2]);
      const keep = async (max: number, before: number) => {
        while (await log.prune(max, before, 7));
      };
      await keep(10, 0);
      await assert.rejects(userFeed.follow(all[19]), { code: 'EVENTS_GONE' });
      assert.deepEqual(await eventsUntil(await userFeed.follow(all[20]), 9), all.slice(21));
      await keep(10, 1_025);
      await assert.rejects(userFeed.follow(all[24]), { code: 'EVENTS_GONE' });
      assert.deepEqual(await eventsUntil(await userFeed.follow(all[25]), 4), all.slice(26));
      // Those that nobody has read yet too.
      await lagging.return();
      await Promise.all(Array.from({ length: 20 }, (_, i) => users.create(userOf(`m${i}`), 2_000)));
      await keep(5, 0);
      const last = await positionOf(userFeed);
      await keep(5, Number.MAX_SAFE_INTEGER);
      assert.deepEqual(await positionOf(userFeed), last);
      await users.create(userOf('end'));
      assert.deepEqual(told(await eventsUntil(await userFeed.follow(last), 1)), ['created 51 end']);
    });

    test('removals run until nothing is due, and end with the database', async () => {
      await using store = await open();
      const { users, userFeed } = store.current;
      const { start } = await userFeed.follow();
      await Promise.all(Array.from({ length: 2_500 }, (_, i) => users.create(userOf(`n${i}`))));
      {
        await using retention = new EventRetention(store.current.userEvents, { max: 100, maxAge: 3_600_000 });
        await retention.prune();
      }
      await assert.rejects(userFeed.follow(start), { code: 'EVENTS_GONE' });
      const last = await positionOf(userFeed);
      assert.ok(last.position > start.position, 'no number comes twice');
      const id = await users.create(userOf('end'));
      assert.deepEqual(told(await eventsUntil(await userFeed.follow(last), 1)), [`created ${id} end`]);
    });
  });
}
