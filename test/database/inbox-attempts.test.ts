import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ClaimedJob, NewDelivery } from '../../src/inbox/delivery.ts';
import type { Inbox, Outcome } from '../../src/inbox/inbox.ts';
import { claim, LATER, LEASE_END } from '../support/claim-jobs.ts';
import { engines } from '../support/databases.ts';
import { NOW, newDelivery } from '../support/new-delivery.ts';

type AttemptTrace = NonNullable<Outcome['trace']>;

const trace = (changes: Partial<AttemptTrace> = {}): AttemptTrace => ({
  duration: 40,
  answer: null,
  kept: 20,
  ...changes,
});
const none = { answer: null, error: null };
const ENDED = LATER + 50;

/** Stores a delivery. */
async function append(inbox: Inbox, changes: Partial<NewDelivery> = {}): Promise<NewDelivery> {
  const one = newDelivery(changes);
  assert.equal(await inbox.append(one), 'stored');
  return one;
}

/** Claims the only job of `t`. */
async function claimOne(inbox: Inbox, owner = 'me', now = LATER): Promise<ClaimedJob> {
  const [job] = await claim(inbox, 1, owner, now);
  return job ?? assert.fail('nothing to claim');
}

/** Makes one attempt at the only job of `t`. */
async function attempt(inbox: Inbox, outcome: Outcome, now = LATER): Promise<void> {
  assert.equal(await inbox.settle(await claimOne(inbox, 'me', now), 'me', outcome, now + 50), true);
}

for (const [engine, open] of Object.entries(engines)) {
  describe(`attempts in ${engine}`, () => {
    test('each is kept: when, how long, which process, how it ended', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const { id } = await append(inbox);
      const odd = 'no\0\u0010 é';
      const answer = { status: 503, body: odd };
      await attempt(inbox, { kind: 'retry', wait: 0, error: odd, trace: trace({ answer }) });
      await attempt(inbox, { kind: 'released', trace: trace({ duration: 7 }) }, LATER + 100);
      await attempt(inbox, { kind: 'done', trace: trace({ duration: 9 }) }, LATER + 200);
      const [job] = (await deliveries.find(id))?.jobs ?? [];
      const process = 'me';
      assert.deepEqual(job?.history, [
        { attempt: 1, outcome: 'retry', startedAt: ENDED - 40, duration: 40, process, answer, error: odd },
        { attempt: 2, outcome: 'released', startedAt: ENDED + 93, duration: 7, process, ...none },
        { attempt: 2, outcome: 'done', startedAt: ENDED + 191, duration: 9, process, ...none },
      ]);
      assert.equal(job.attempts, 2);
    });

    test('a success with an answer, and the last failure, are there once', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const answer = { status: 200, body: 'ok' };
      const good = await append(inbox);
      await attempt(inbox, { kind: 'done', trace: trace({ answer }) });
      const bad = await append(inbox);
      await attempt(inbox, { kind: 'dead', error: 'E: no', trace: trace() });
      const entry = { attempt: 1, startedAt: ENDED - 40, duration: 40, process: 'me' };
      const historyOf = async ({ id }: NewDelivery) => (await deliveries.find(id))?.jobs[0]?.history;
      assert.deepEqual(await historyOf(good), [{ ...entry, outcome: 'done', answer, error: null }]);
      assert.deepEqual(await historyOf(bad), [{ ...entry, outcome: 'dead', answer: null, error: 'E: no' }]);
    });

    test('an outcome that comes too late leaves nothing', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const { id } = await append(inbox);
      const job = await claimOne(inbox, 'first');
      assert.equal(
        await inbox.settle(job, 'other', { kind: 'dead', error: 'E', trace: trace() }, ENDED),
        false,
      );
      const stale = { ...job, attempt: 7 };
      const retry: Outcome = { kind: 'retry', wait: 0, error: 'E', trace: trace() };
      assert.equal(await inbox.settle(stale, 'first', retry, ENDED), false);
      assert.deepEqual((await deliveries.find(id))?.jobs[0]?.history, []);
    });

    test('the crashes of processes are among them, found by a claim or told', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const { id } = await append(inbox);
      await claimOne(inbox, 'gone');
      const told = await claimOne(inbox, 'crashed', LEASE_END + 1);
      assert.equal(told.crashes, 1);
      await inbox.settle(told, 'crashed', { kind: 'crashed', trace: trace() }, LEASE_END + 2);
      const [job] = await inbox.claim('t', 1, 'me', 9_000, { now: LEASE_END + 3, quarantined: true });
      assert.ok(job);
      await inbox.settle(job, 'me', { kind: 'done', trace: trace({ duration: 0 }) }, LEASE_END + 4);
      const died = { attempt: 1, outcome: 'crashed', duration: null, ...none };
      assert.deepEqual((await deliveries.find(id))?.jobs[0]?.history, [
        { ...died, startedAt: LATER, process: 'gone' },
        { ...died, startedAt: LEASE_END + 1, process: 'crashed' },
        { attempt: 1, outcome: 'done', startedAt: LEASE_END + 4, duration: 0, process: 'me', ...none },
      ]);
    });

    test('the crash of a process in an order is among them too', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const { id } = await append(inbox, { jobs: [{ target: 't', orderKey: 'k' }] });
      await claimOne(inbox, 'gone');
      await claimOne(inbox, 'me', LEASE_END + 1);
      const [entry, ...rest] = (await deliveries.find(id))?.jobs[0]?.history ?? [];
      assert.deepEqual([entry?.outcome, entry?.process, entry?.startedAt], ['crashed', 'gone', LATER]);
      assert.deepEqual(rest, []);
    });

    test('the oldest go when there are too many, of this job alone', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const other = await append(inbox);
      await attempt(inbox, { kind: 'dead', error: 'other', trace: trace() });
      const { id } = await append(inbox);
      const kept = 3;
      for (let i = 1; i <= 7; i++) {
        await attempt(
          inbox,
          { kind: 'retry', wait: 0, error: `${i}`, trace: trace({ kept }) },
          LATER + i * 100,
        );
      }
      const errors = async (name: string) =>
        (await deliveries.find(name))?.jobs[0]?.history.map(({ error }) => error);
      assert.deepEqual(await errors(id), ['5', '6', '7']);
      assert.deepEqual(await errors(other.id), ['other']);
      await attempt(inbox, { kind: 'dead', error: 'none', trace: trace({ kept: 0 }) }, LATER + 900);
      assert.deepEqual(await errors(id), []);
    });

    test('those before a replay stay, a success too', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const jobs = [{ target: 't', orderKey: null }];
      const { id } = await append(inbox);
      await attempt(inbox, { kind: 'retry', wait: 0, error: 'E', trace: trace() });
      await attempt(inbox, { kind: 'done', trace: trace() }, LATER + 100);
      assert.equal(await deliveries.replay(id, jobs, NOW), true);
      assert.equal(await deliveries.replay(id, jobs, NOW), false, 'it is open');
      await attempt(inbox, { kind: 'done', trace: trace() }, LATER + 200);
      const history = (await deliveries.find(id))?.jobs[0]?.history ?? [];
      assert.deepEqual(
        history.map(({ attempt, outcome, startedAt, process }) => [attempt, outcome, startedAt, process]),
        [
          [1, 'retry', ENDED - 40, 'me'],
          [2, 'done', ENDED + 60, 'me'],
          [1, 'done', ENDED + 160, 'me'],
        ],
      );
    });

    test('they go with their delivery', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const answer = { status: 500, body: '' };
      const gone = await append(inbox, { headers: '{"x-event":"gone"}' });
      const size = await inbox.size();
      await attempt(inbox, { kind: 'dead', error: 'E', trace: trace({ answer }) });
      const kept = await append(inbox);
      await attempt(inbox, { kind: 'dead', error: 'E', trace: trace({ answer }) }, LATER + 10_000);
      const { removed } = await inbox.prune({ kind: 'ended', before: LATER + 5_000 });
      assert.equal(removed, 1);
      assert.equal(await deliveries.find(gone.id), undefined);
      assert.equal((await deliveries.find(kept.id))?.jobs[0]?.history.length, 1);
      assert.equal(await inbox.size(), size - '{"x-event":"gone"}'.length);
      // A job with the number of a removed one would get its attempts.
      const again = await append(inbox);
      await attempt(inbox, { kind: 'done', trace: trace() }, LATER + 20_000);
      assert.equal((await deliveries.find(again.id))?.jobs[0]?.history.length, 1);
    });
  });
}
