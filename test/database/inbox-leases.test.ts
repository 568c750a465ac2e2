import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Inbox } from '../../src/inbox/inbox.ts';
import { claim, LATER, LEASE_END } from '../support/claim-jobs.ts';
import { engines } from '../support/databases.ts';
import { manualTarget, startDispatcher } from '../support/dispatch.ts';
import { newDelivery } from '../support/new-delivery.ts';
import { waitFor } from '../support/wait-for.ts';

const SOON = { timeout: 300_000 };
const FAR = 3_600_000;

/** Blocks the event loop, so that no timer runs and no answer is read. */
function block(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}

/** The inbox with a renewal of the test's own. */
function withRenewal(inbox: Inbox, renew: Inbox['renew']): Inbox {
  return { ...inbox, renew };
}

for (const [engine, open] of Object.entries(engines)) {
  describe(`leases in ${engine}`, () => {
    test('what a process is running it does not claim again, though the lease has ended', async () => {
      await using database = await open();
      const { inbox } = database.current;
      await inbox.append(newDelivery());
      const [job] = await claim(inbox);
      assert.ok(job);
      const again = (held: readonly number[]) => inbox.claim('t', 10, 'me', 5_000, { held, now: LEASE_END });
      assert.deepEqual(await again([job.job]), []);
      assert.deepEqual(
        (await again([])).map(({ job }) => job),
        [job.job],
      );
    });

    test('nor is another job of the same order claimed beside it', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const jobs = [{ target: 't', orderKey: 'a' }];
      const [first, second] = [newDelivery({ jobs }), newDelivery({ jobs })];
      for (const each of [first, second]) await inbox.append(each);
      const [dead] = await claim(inbox);
      assert.ok(dead && (await inbox.settle(dead, 'me', { kind: 'dead', error: 'x' }, LATER)));
      const [running] = await claim(inbox);
      assert.equal(running?.delivery.id, second.id);
      assert.equal(await deliveries.replay(first.id, jobs, LATER), true);
      const held = [running?.job ?? 0];
      assert.deepEqual(await inbox.claim('t', 10, 'me', 5_000, { held, now: LEASE_END }), []);
      assert.equal(await inbox.settle(running, 'me', { kind: 'done' }, LEASE_END), true);
    });

    test('a renewal tells which leases hold and which are lost', async () => {
      await using database = await open();
      const { inbox } = database.current;
      for (let i = 0; i < 3; i++) await inbox.append(newDelivery());
      const [kept, stolen, ended] = await claim(inbox);
      assert.ok(kept && stolen && ended);
      await inbox.settle(ended, 'me', { kind: 'done' }, LATER);
      await inbox.renew('me', [kept.job], 10_000, LATER);
      await inbox.claim('t', 1, 'other', 5_000, { now: LEASE_END });
      const { renewed, lost } = await inbox.renew('me', [kept.job, stolen.job, ended.job], 5_000, LEASE_END);
      assert.deepEqual([renewed, lost], [[kept.job], [stolen.job, ended.job]]);
    });

    test('a process that stood still for longer than its leases starts nothing twice', SOON, async () => {
      await using database = await open();
      const { inbox } = database.current;
      const { attempts, run } = manualTarget();
      await using running = startDispatcher(inbox, run, { lease: 300 });
      for (let i = 0; i < 10; i++) await inbox.append(newDelivery());
      await waitFor('all to begin', () => attempts.length === 10);
      block(600);
      const later = newDelivery();
      await inbox.append(later);
      await waitFor('a later delivery to begin', () => attempts.some(({ id }) => id === later.id));
      const begun = attempts.map(({ id }) => id);
      assert.equal(new Set(begun).size, begun.length, 'none began twice');
      for (const { end } of attempts) end();
      // On a busy machine the renewal may come so late that an attempt was told to end.
      await waitFor('all to be done', () => running.settled.length + running.lost.length >= 11);
      assert.deepEqual(running.failures, []);
    });

    test('a claim that is answered after its leases have ended begins nothing', SOON, async () => {
      await using database = await open();
      const { inbox } = database.current;
      let claims = 0;
      const late: Inbox = {
        ...inbox,
        async claim(...args) {
          const jobs = await inbox.claim(...args);
          if (jobs.length > 0 && ++claims === 1) block(300);
          return jobs;
        },
      };
      const attempts: number[] = [];
      await inbox.append(newDelivery());
      await using running = startDispatcher(late, ({ attempt }) => void attempts.push(attempt), {
        lease: 200,
      });
      await waitFor('it to be handled', () => running.settled.some(({ outcome }) => outcome === 'done'));
      assert.equal(running.settled[0]?.outcome, 'released', 'another process may have had it by then');
      assert.deepEqual(attempts, [1]);
    });

    test('nothing is claimed before leases are renewed that end soon', SOON, async () => {
      await using database = await open();
      const { inbox } = database.current;
      const { attempts, run } = manualTarget();
      const calls: string[] = [];
      const noted: Inbox = {
        ...inbox,
        async renew(...args) {
          const renewal = await inbox.renew(...args);
          calls.push('renewed');
          return renewal;
        },
        async claim(...args) {
          calls.push('claim');
          claiming++;
          const jobs = await inbox.claim(...args);
          claiming--;
          return jobs;
        },
      };
      let claiming = 0;
      await using running = startDispatcher(noted, run, { lease: 2_000, interval: FAR });
      // A claim that was late is not repeated by itself before the next poll.
      const begun = (count: number) =>
        waitFor('an attempt to begin', () => {
          running.dispatcher.wake('t');
          return attempts.length === count && attempts.at(-1);
        });
      await inbox.append(newDelivery());
      await begun(1);
      await waitFor('no claim', () => claiming === 0);
      await inbox.append(newDelivery());
      // More than half of a lease, in which no timer runs.
      block(1_500);
      calls.length = 0;
      await begun(2);
      assert.deepEqual(calls.slice(0, 2), ['renewed', 'claim']);
      for (const { end } of attempts) end();
    });

    test('an attempt is told that its lease is lost, once and before it ends', SOON, async () => {
      await using database = await open();
      const { inbox } = database.current;
      const { attempts, run } = manualTarget();
      await using running = startDispatcher(inbox, run, { lease: 300 });
      const { id } = newDelivery();
      await inbox.append(newDelivery({ id }));
      const first = await waitFor('the attempt to begin', () => attempts[0]);
      await inbox.claim('t', 1, 'other', FAR, { now: Date.now() + FAR });
      await waitFor('the signal to abort', () => first.signal.aborted);
      assert.equal(Object(first.signal.reason).code, 'LEASE_LOST');
      first.end();
      await running.stop(AbortSignal.timeout(60_000));
      assert.deepEqual([running.settled, running.lost, attempts.length], [[], [id], 1]);
    });

    test('an attempt whose lease cannot be renewed is told when it may have ended', SOON, async () => {
      await using database = await open();
      const { inbox } = database.current;
      const { attempts, run } = manualTarget();
      const down = withRenewal(inbox, () => Promise.reject(new Error('no renewal')));
      await using running = startDispatcher(down, run, { lease: 150, interval: 60_000 });
      // A claim that was late is not repeated by itself before the next poll.
      const wake = () => running.dispatcher.wake('t');
      await inbox.append(newDelivery());
      const first = await waitFor('the attempt to begin', () => {
        wake();
        return attempts[0];
      });
      await waitFor('the signal to abort', () => first.signal.aborted);
      assert.equal(Object(first.signal.reason).code, 'LEASE_LOST');
      assert.equal(running.lost.length, 1);
      await inbox.append(newDelivery());
      await waitFor('the next delivery to begin', () => {
        wake();
        return attempts.some(({ id }) => id !== first.id);
      });
      assert.equal(attempts.length, 2, 'what still runs does not begin again');
    });
  });
}
