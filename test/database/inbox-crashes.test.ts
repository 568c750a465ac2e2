import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Inbox } from '../../src/inbox/inbox.ts';
import { ids, LATER } from '../support/claim-jobs.ts';
import { engines } from '../support/databases.ts';
import { manualTarget, startDispatcher } from '../support/dispatch.ts';
import { newDelivery } from '../support/new-delivery.ts';
import { waitFor } from '../support/wait-for.ts';

const MAX_CRASHES = 5;

/** A process claims all it can get, and ends before anything has ended. */
async function die(inbox: Inbox, process: string) {
  const claim = (quarantined: boolean) =>
    inbox.claim('t', quarantined ? 1 : 100, process, 0, { now: LATER, quarantined });
  return [...(await claim(false)), ...(await claim(true))];
}

for (const [engine, open] of Object.entries(engines)) {
  describe(`crashes in ${engine}`, () => {
    test('a crash is no attempt, and the one that died is fenced off', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const { id } = newDelivery();
      await inbox.append(newDelivery({ id }));
      const [first] = await die(inbox, 'one');
      const [again] = await inbox.claim('t', 1, 'two', 4_000, { now: LATER });
      assert.deepEqual([first?.attempt, first?.crashes], [1, 0]);
      assert.deepEqual([again?.attempt, again?.crashes], [1, 1]);
      assert.ok(first && again);
      assert.equal(await inbox.settle(first, 'one', { kind: 'done' }, LATER), false);
      assert.equal(await inbox.settle(again, 'two', { kind: 'retry', wait: 0, error: 'x' }, LATER), true);
      const [next] = await inbox.claim('t', 1, 'two', 4_000, { now: LATER });
      assert.deepEqual([next?.attempt, next?.crashes], [2, 1]);
      assert.equal((await deliveries.find(id))?.jobs[0]?.crashes, 1, 'it is shown');
    });

    test('an end that was not recorded is an attempt of a process that lives', async () => {
      await using database = await open();
      const { inbox } = database.current;
      await inbox.append(newDelivery());
      await inbox.claim('t', 1, 'me', 0, { now: LATER });
      const [again] = await inbox.claim('t', 1, 'me', 0, { now: LATER });
      assert.deepEqual([again?.attempt, again?.crashes], [2, 0]);
    });

    test('after two crashes the quarantined are claimed one at a time', async () => {
      await using database = await open();
      const { inbox } = database.current;
      for (let i = 0; i < 3; i++) await inbox.append(newDelivery());
      for (const process of ['one', 'two']) assert.equal((await die(inbox, process)).length, 3);
      const fresh = newDelivery();
      await inbox.append(fresh);
      assert.deepEqual(await inbox.dueQuarantined(['t', 'u'], LATER), ['t']);
      const others = await inbox.claim('t', 10, 'three', 4_000, { now: LATER });
      assert.deepEqual(ids(others), [fresh.id], 'they hold up nobody else');
      const quarantined = [];
      for (let i = 0; i < 4; i++) {
        quarantined.push(await inbox.claim('t', 1, 'three', 4_000, { now: LATER, quarantined: true }));
      }
      assert.deepEqual(
        quarantined.map((jobs) => jobs.map(({ crashes }) => crashes)),
        [[2], [2], [2], []],
      );
      assert.deepEqual(await inbox.dueQuarantined(['t'], LATER), []);
    });

    test('a replay and a crash that is known at once', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const { id } = newDelivery();
      await inbox.append(newDelivery({ id }));
      for (const process of ['one', 'two']) await die(inbox, process);
      const [job] = await inbox.claim('t', 1, 'three', 4_000, { now: LATER, quarantined: true });
      assert.ok(job && (await inbox.settle(job, 'three', { kind: 'crashed' }, LATER)));
      const [last] = await inbox.claim('t', 1, 'four', 4_000, { now: LATER, quarantined: true });
      assert.deepEqual([last?.attempt, last?.crashes], [1, 3]);
      assert.ok(last && (await inbox.settle(last, 'four', { kind: 'dead', error: 'x' }, LATER)));
      assert.ok(await deliveries.replay(id, [{ target: 't', orderKey: null }], LATER));
      const [replayed] = await inbox.claim('t', 1, 'five', 4_000, { now: LATER });
      assert.deepEqual([replayed?.attempt, replayed?.crashes], [1, 0]);
    });

    test('of eight good deliveries beside one that ends its process only that one dies', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const all = Array.from({ length: 9 }, () => newDelivery());
      for (const each of all) await inbox.append(each);
      const poison = all[4]?.id;
      for (let process = 0; process < 2; process++) await die(inbox, `process ${process}`);
      // Each process does what it can until it comes upon the poison.
      const done: string[] = [];
      let killed = 0;
      for (; killed < 10 && done.length < 8; killed++) {
        const now = LATER + killed * 1_000;
        for (;;) {
          const [job] = await inbox.claim('t', 1, `next ${killed}`, 900, { now, quarantined: true });
          if (job === undefined || job.delivery.id === poison) break;
          assert.ok(job.crashes < MAX_CRASHES);
          assert.ok(await inbox.settle(job, `next ${killed}`, { kind: 'done' }, now));
          done.push(job.delivery.id);
        }
      }
      assert.equal(done.length, 8);
      assert.ok(killed <= MAX_CRASHES);
    });

    test('a process runs one quarantined at a time, and others beside it', { timeout: 300_000 }, async () => {
      await using database = await open();
      const { inbox } = database.current;
      for (let i = 0; i < 3; i++) await inbox.append(newDelivery());
      for (const process of ['one', 'two']) await die(inbox, process);
      const fresh = newDelivery();
      await inbox.append(fresh);
      const { attempts, run } = manualTarget();
      await using running = startDispatcher(inbox, run);
      for (let settled = 0; settled < 3; settled++) {
        await waitFor('a quarantined and the other one to begin', () => attempts.length === settled + 2);
        const quarantined = attempts.findLast(({ id }) => id !== fresh.id);
        // Several polls find that one is running.
        for (let polls = 0; polls < 5; polls++) await inbox.dueQuarantined(['t']);
        assert.equal(attempts.length, settled + 2);
        quarantined?.end();
        await waitFor('its end to be recorded', () => running.settled.length === settled + 1);
      }
      for (const { end } of attempts) end();
      await waitFor('all to be settled', () => running.settled.length === 4);
    });

    test('a job with too many crashes is dead, and is not begun again', { timeout: 300_000 }, async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const { id } = newDelivery();
      await inbox.append(newDelivery({ id }));
      for (let process = 0; process < MAX_CRASHES; process++) await die(inbox, `process ${process}`);
      const { attempts, run } = manualTarget();
      await using running = startDispatcher(inbox, run);
      await waitFor('it to be dead', () => running.settled.length === 1);
      const [job] = (await deliveries.find(id))?.jobs ?? [];
      assert.equal(job?.status, 'dead');
      assert.match(job.error ?? '', /process crashed/);
      assert.equal(attempts.length, 0);
    });
  });
}
