import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { engines } from '../support/databases.ts';
import { manualTarget, startDispatcher } from '../support/dispatch.ts';
import { newDelivery } from '../support/new-delivery.ts';
import { waitFor } from '../support/wait-for.ts';

const SOON = { timeout: 300_000 };
const jobs = [{ target: 't', orderKey: 'a' }];

for (const [engine, open] of Object.entries(engines)) {
  describe(`timeouts in ${engine}`, () => {
    test('a delivery keeps its key until its handler has ended, whatever its signal says', SOON, async () => {
      await using database = await open();
      const { inbox } = database.current;
      const { attempts, run } = manualTarget();
      await using running = startDispatcher(inbox, run, { target: { timeout: 2_000 } });
      const [first, second] = [newDelivery({ jobs }), newDelivery({ jobs })];
      for (const each of [first, second]) await inbox.append(each);
      const slow = await waitFor('the first attempt', () => attempts[0]);
      await waitFor('its signal to abort', () => slow.signal.aborted);
      // Many polls, none of which finds anything to claim.
      await delay(200);
      assert.deepEqual([attempts.length, running.settled], [1, []]);
      slow.end();
      await waitFor('the second attempt', () => attempts[1]);
      assert.deepEqual(
        running.settled,
        [{ id: first.id, outcome: 'retry' }],
        'it took too long all the same',
      );
      attempts[1]?.end();
      await waitFor('the next delivery', () => attempts[2]);
      assert.deepEqual(
        attempts.map(({ id }) => id),
        [first.id, first.id, second.id],
      );
      attempts[2]?.end();
      assert.deepEqual(running.overdue, []);
    });

    test('a handler that does not end at all is reported, and holds up nobody for ever', SOON, async () => {
      await using database = await open();
      const { inbox } = database.current;
      const { attempts, run } = manualTarget();
      const target = { timeout: 50, maxAttempts: 1 };
      await using running = startDispatcher(inbox, run, { target });
      const [first, second] = [newDelivery({ jobs }), newDelivery({ jobs })];
      for (const each of [first, second]) await inbox.append(each);
      const next = await waitFor('the next delivery', () => attempts[1]);
      assert.equal(next.id, second.id);
      assert.deepEqual(running.overdue, [first.id]);
      assert.deepEqual(running.settled, [{ id: first.id, outcome: 'dead' }]);
    });
  });
}
