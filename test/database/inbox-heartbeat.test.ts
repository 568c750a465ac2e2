import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { claim, LATER, LEASE_END } from '../support/claim-jobs.ts';
import { engines } from '../support/databases.ts';
import { NOW, newDelivery } from '../support/new-delivery.ts';

for (const [engine, open] of Object.entries(engines)) {
  describe(`orphaned jobs in ${engine}`, () => {
    test('jobs of targets that no process runs expire, and can be replayed', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const gone = newDelivery({ jobs: ['gone', 't'].map((target) => ({ target, orderKey: null })) });
      const fresh = newDelivery({ receivedAt: LATER, jobs: [{ target: 'gone', orderKey: null }] });
      for (const each of [gone, fresh]) await inbox.append(each);
      const expire = (before: number, limit = 10) => inbox.expireOrphans(before, limit, 'nobody', before + 1);
      assert.deepEqual(await expire(LATER + 9), [], 'nobody has looked yet');
      await inbox.recordHeartbeat(['t'], NOW);
      assert.deepEqual(await expire(NOW - 1), [], 'looked at for the first time just now');
      await inbox.recordHeartbeat(['t', 't'], NOW + 500);
      assert.deepEqual(await expire(NOW), ['gone'], 'not the one that was due later, nor what is run');
      const job = (await deliveries.find(gone.id))?.jobs.find(({ target }) => target === 'gone');
      assert.deepEqual([job?.status, job?.error, job?.finishedAt], ['dead', 'nobody', NOW + 1]);
      assert.equal((await deliveries.find(fresh.id))?.status, 'pending');
      assert.deepEqual(await inbox.backlog(), { open: 2, dead: 1, oldestAt: NOW });

      await inbox.recordHeartbeat(['gone', 't'], LATER + 1);
      assert.deepEqual(await expire(LATER), [], 'somebody has it again');
      await inbox.recordHeartbeat(['gone'], NOW);
      assert.deepEqual(await expire(LATER), [], 'a clock that is behind takes nothing back');
      const [other] = await claim(inbox);
      assert.ok(other && (await inbox.settle(other, 'me', { kind: 'done' }, LATER)));
      const again = [{ target: 'gone', orderKey: null }];
      assert.equal(await deliveries.replay(gone.id, again, LATER + 2), true);
      assert.equal((await inbox.claim('gone', 10, 'me', 4_000, { now: LATER + 2 })).length, 2);
    });

    test('leased jobs expire only after their lease has ended, and at most the limit at once', async () => {
      await using database = await open();
      const { inbox } = database.current;
      await inbox.recordHeartbeat([], NOW - 9);
      for (let i = 0; i < 3; i++) await inbox.append(newDelivery());
      const [job] = await claim(inbox, 1);
      await inbox.recordHeartbeat([], NOW);
      assert.deepEqual(await inbox.expireOrphans(LATER, 1, 'x', LATER), ['t']);
      assert.deepEqual(await inbox.expireOrphans(LATER, 9, 'x', LATER), ['t']);
      assert.deepEqual(await inbox.expireOrphans(LEASE_END - 1, 9, 'x', LEASE_END), []);
      assert.deepEqual(await inbox.expireOrphans(LEASE_END, 9, 'x', LEASE_END), ['t']);
      assert.ok(
        job && !(await inbox.settle(job, 'me', { kind: 'done' }, LEASE_END)),
        'its holder is fenced off',
      );
    });

    test('any number of targets that wait are found', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const names = ['', ' ', 'a', 'A', 'é', '😀', 'handler:x', 'forward:x', '\0', '\u0010'];
      const targets = names.map((target) => ({ target, orderKey: null }));
      for (let i = 0; i < 3; i++) await inbox.append(newDelivery({ jobs: targets }));
      await inbox.recordHeartbeat(names.slice(0, 2), NOW);
      await inbox.recordHeartbeat(names.slice(0, 2), LATER);
      const gone = await inbox.expireOrphans(NOW, 1_000, 'x', LATER);
      assert.deepEqual([...new Set(gone)].sort(), names.slice(2).sort());
      assert.equal(gone.length, 3 * 8);
    });
  });
}
