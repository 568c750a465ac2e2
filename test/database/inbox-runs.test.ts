import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Finished, Inbox } from '../../src/inbox/inbox.ts';
import { claim, ids, LATER } from '../support/claim-jobs.ts';
import { engines } from '../support/databases.ts';
import { startDispatcher } from '../support/dispatch.ts';
import { NOW, newDelivery } from '../support/new-delivery.ts';
import { waitFor } from '../support/wait-for.ts';

/** Deliveries on one key; more take longer. */
const MANY = Number(process.env.PORTICO_HOT_KEY ?? 1_500);
const jobs = [{ target: 't', orderKey: 'hot' }];
const DONE = { kind: 'done' } as const;
const NEXT = { lease: 4_000, maxBytes: 1_000 };

/** Stores deliveries with one key; resolves to their ids. */
async function append(inbox: Inbox, count: number, receivedAt = NOW): Promise<readonly string[]> {
  const all = Array.from({ length: count }, () => newDelivery({ receivedAt, jobs }));
  await Promise.all(all.map((each) => inbox.append(each)));
  return ids(all.map((delivery) => ({ delivery })));
}

const nextId = ({ next }: Finished) => next?.delivery.id;

for (const [engine, open] of Object.entries(engines)) {
  describe(`runs of one key in ${engine}`, () => {
    test('many deliveries on one key take few claims, in order, and hold up no other', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const hot = await append(inbox, MANY);
      const other = newDelivery({ receivedAt: NOW + 1 });
      await inbox.append(other);
      let claims = 0;
      const counting: Inbox = {
        ...inbox,
        claim: (...args) => {
          claims++;
          return inbox.claim(...args);
        },
      };
      const run: string[] = [];
      await using running = startDispatcher(counting, ({ delivery: { id } }) => void run.push(id), {
        interval: 100,
      });
      await waitFor('all to be handled', () => running.settled.length > MANY, 120_000);
      assert.deepEqual(
        run.filter((id) => id !== other.id),
        hot,
      );
      assert.ok(run.indexOf(other.id) < MANY / 2, `${run.indexOf(other.id)} were handled before it`);
      assert.ok(claims < MANY / 4, `${claims} claims`);
      assert.deepEqual(await inbox.backlog(), { open: 0, dead: 0, oldestAt: undefined });
    });

    test('the end of a job claims the next one of its key, once', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const [, second, third] = await append(inbox, 3);
      const [head] = await claim(inbox);
      assert.ok(head);
      const ended = await inbox.finish(head, 'me', DONE, NEXT, LATER);
      assert.deepEqual([ended.recorded, nextId(ended), ended.next?.attempt], [true, second, 1]);
      assert.deepEqual(await claim(inbox), [], 'it is leased');
      assert.ok(ended.next);
      const dead = await inbox.finish(ended.next, 'me', { kind: 'dead', error: 'x' }, NEXT, LATER);
      assert.equal(nextId(dead), third);
      assert.ok(dead.next);
      assert.deepEqual(await inbox.finish(dead.next, 'me', DONE, NEXT, LATER), {
        recorded: true,
        next: undefined,
      });
    });

    test('a lost lease ends the run', async () => {
      await using database = await open();
      const { inbox } = database.current;
      await append(inbox, 2);
      const [head] = await inbox.claim('t', 1, 'me', 0, { now: LATER });
      const [taken] = await claim(inbox, 1, 'other');
      assert.ok(head && taken?.job === head.job);
      const ended = await inbox.finish(head, 'me', DONE, NEXT, LATER);
      assert.deepEqual([ended.recorded, ended.next], [false, undefined]);
      assert.equal((await inbox.finish(taken, 'other', DONE, NEXT, LATER)).next?.job, head.job + 1);
    });

    test('a run ends before a quarantined, a job that is not due yet, and a large body', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const [first = ''] = await append(inbox, 2);
      const [dead] = await claim(inbox);
      assert.ok(dead && (await inbox.settle(dead, 'me', { kind: 'dead', error: 'x' }, LATER)));
      for (let crash = 0; crash < 2; crash++) {
        const [died] = await claim(inbox);
        assert.ok(died && (await inbox.settle(died, 'me', { kind: 'crashed' }, LATER)));
      }
      assert.ok(await deliveries.replay(first, jobs, LATER));
      await append(inbox, 1, LATER + 9_000);
      await inbox.append(newDelivery({ receivedAt: LATER, jobs, body: Buffer.alloc(1_001) }));
      const now = LATER + 9_000;
      const endOfRun = async (at: number, quarantined: boolean) => {
        const [head, ...others] = await inbox.claim('t', 9, 'me', 4_000, { now: at, quarantined });
        assert.ok(head && others.length === 0);
        const { recorded, next } = await inbox.finish(head, 'me', DONE, NEXT, at);
        assert.deepEqual([recorded, next], [true, undefined]);
        return head.job - dead.job;
      };
      assert.equal(await endOfRun(LATER, false), 0);
      assert.equal(await endOfRun(LATER, true), 1);
      assert.deepEqual(await claim(inbox), []);
      assert.equal(await endOfRun(now, false), 2);
      assert.equal(await endOfRun(now, false), 3);
    });

    test('what is discarded, dead or expired makes way, and all of a key expires', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const [first = '', second = '', third] = await append(inbox, 3);
      for (const id of [second, first]) assert.ok(await deliveries.discard(id, LATER));
      const [head] = await claim(inbox);
      assert.equal(head?.delivery.id, third);
      await append(inbox, 20);
      // The jobs behind a leased one wait; those are found as well.
      assert.deepEqual(await claim(inbox), []);
      await inbox.recordHeartbeat(['t'], NOW);
      const before = LATER + 100_000;
      const expired: string[] = [];
      for (let more = 1; more > 0; ) {
        const batch = await inbox.expireOrphans(before, 8, 'gone', before);
        expired.push(...batch);
        more = batch.length;
      }
      assert.equal(expired.length, 21);
    });
  });
}
