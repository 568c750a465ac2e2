import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ClaimRateLimit } from '../../src/inbox/dispatch/claim-rate.ts';
import type { Inbox } from '../../src/inbox/inbox.ts';
import { engines } from '../support/databases.ts';
import { startDispatcher } from '../support/dispatch.ts';
import { newDelivery } from '../support/new-delivery.ts';
import { waitFor } from '../support/wait-for.ts';

for (const [engine, open] of Object.entries(engines)) {
  describe(`a gate in front of claims in ${engine}`, () => {
    test('jobs behind it hold no lease and use no attempt, and run once it opens', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      let now = 0;
      const gate = new ClaimRateLimit({ perMs: 0.001, burst: 2 }, () => now);
      const all = Array.from({ length: 6 }, () => newDelivery());
      for (const each of all) await inbox.append(each);
      await using running = startDispatcher(inbox, async () => {}, { target: { rateLimit: gate } });
      const { settled } = running;
      await waitFor('the burst', () => settled.length === 2);
      // Some polls later nothing else was claimed.
      await sleep(50);
      const jobs = await Promise.all(all.map(async ({ id }) => (await deliveries.find(id))?.jobs[0]));
      assert.deepEqual(
        jobs.map((job) => [job?.status, job?.attempts]),
        [...Array(2).fill(['done', 1]), ...Array(4).fill(['pending', 0])],
      );
      now = 1_000;
      await waitFor('the next', () => settled.length === 3);
      gate.pause(10_000);
      now = 5_000;
      await sleep(20);
      assert.equal(settled.length, 3, 'paused');
      now = 100_000;
      await waitFor('two more', () => settled.length === 5);
      now = 101_000;
      await waitFor('the last', () => settled.length === 6);
      assert.deepEqual(running.failures, []);
    });

    test('a claim that was under way when a pause began gives its jobs back', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const gate = new ClaimRateLimit(undefined);
      const slow: Inbox = {
        ...inbox,
        async claim(...given) {
          const jobs = await inbox.claim(...given);
          gate.pause(3_600_000);
          return jobs;
        },
      };
      const delivery = newDelivery();
      await inbox.append(delivery);
      await using running = startDispatcher(slow, () => assert.fail('it ran'), {
        target: { rateLimit: gate },
      });
      await waitFor('it to be given back', () => running.settled.length > 0);
      assert.deepEqual(running.settled, [{ id: delivery.id, outcome: 'released' }]);
      const job = (await deliveries.find(delivery.id))?.jobs[0];
      assert.deepEqual([job?.status, job?.attempts], ['pending', 0]);
    });

    test('a quarantined behind a gate that stays closed holds up no other target', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const gate = new ClaimRateLimit(undefined);
      gate.pause(3_600_000);
      for (const target of ['t', 'u']) {
        await inbox.append(newDelivery({ jobs: [{ target, orderKey: null }] }));
        for (let crashes = 0; crashes < 2; crashes++) {
          const [job] = await inbox.claim(target, 1, 'gone', 1_000, { quarantined: crashes === 2 });
          assert.ok(job && (await inbox.settle(job, 'gone', { kind: 'crashed' })));
        }
      }
      const done: string[] = [];
      const run = ({ target }: { readonly target: string }) => void done.push(target);
      const limits = { concurrency: 1, timeout: 60_000, maxAttempts: 10, backoff: { base: 0, cap: 0 } };
      await using _ = startDispatcher(inbox, run, {
        targets: [
          { name: 't', run, ...limits, rateLimit: gate },
          { name: 'u', run, ...limits },
        ],
      });
      await waitFor('the other one', () => done.length > 0);
      assert.deepEqual(done, ['u']);
    });
  });
}
