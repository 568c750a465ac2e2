import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manualTarget, startDispatcher } from '../../../test/support/dispatch.ts';
import { newDelivery } from '../../../test/support/new-delivery.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { openDatabase } from '../../sql/open.ts';
import type { Inbox } from '../inbox.ts';

const SOON = { timeout: 300_000 };

/** An inbox in memory with a backlog, and the limits of its claims. */
async function backlog(count: number) {
  const database = openDatabase('sqlite::memory:');
  await Promise.all(Array.from({ length: count }, () => database.inbox.append(newDelivery())));
  const limits: number[] = [];
  const claimed: string[] = [];
  const inbox: Inbox = {
    ...database.inbox,
    async claim(target, limit, ...rest) {
      limits.push(limit);
      const jobs = await database.inbox.claim(target, limit, ...rest);
      claimed.push(...jobs.map(({ delivery: { id } }) => id));
      return jobs;
    },
  };
  return { database, inbox, limits, claimed, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() };
}

test('jobs of quick handlers are claimed ahead, and no more run at once', SOON, async () => {
  await using stored = await backlog(2_000);
  let running = 0;
  let most = 0;
  const run = async () => {
    most = Math.max(most, ++running);
    await Promise.resolve();
    running--;
  };
  await using dispatching = startDispatcher(stored.inbox, run, { target: { concurrency: 4 } });
  await waitFor('all to be settled', () => dispatching.settled.length === 2_000);
  assert.equal(most, 4);
  assert.ok(Math.max(...stored.limits) > 16, `at most ${Math.max(...stored.limits)} at once`);
});

test(
  'jobs that were claimed ahead are released when the handlers become slow, and at a stop',
  SOON,
  async () => {
    await using stored = await backlog(2_000);
    const { attempts, run } = manualTarget();
    let quick = 500;
    await using dispatching = startDispatcher(stored.inbox, (job, signal) =>
      quick-- > 0 ? undefined : run(job, signal),
    );
    await waitFor('slow ones to fill all slots', () => attempts.length === 16);
    const { claimed, database } = stored;
    await waitFor('the others to be released', () => claimed.length - dispatching.settled.length === 16);
    assert.equal((await database.inbox.claim('t', 2_000, 'other', 60_000)).length, 1_500 - 16);
    assert.ok(dispatching.settled.every(({ outcome }) => outcome === 'done' || outcome === 'released'));
    await dispatching.stop();
    assert.equal((await database.inbox.backlog()).open, 1_500);
    for (const { end } of attempts) end();
  },
);
