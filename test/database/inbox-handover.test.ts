import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ClaimedJob, NewDelivery, NewJob, StoredDelivery } from '../../src/inbox/delivery.ts';
import { ClaimRateLimit } from '../../src/inbox/dispatch/claim-rate.ts';
import type { HandOver, Inbox } from '../../src/inbox/inbox.ts';
import { ids } from '../support/claim-jobs.ts';
import { engines } from '../support/databases.ts';
import { manualTarget, startDispatcher } from '../support/dispatch.ts';
import { newDelivery } from '../support/new-delivery.ts';
import { waitFor } from '../support/wait-for.ts';

const SOON = { timeout: 60_000 };
const HOUR = 3_600_000;
const LEASE = 60_000;
const plain = (...targets: readonly string[]): readonly NewJob[] =>
  targets.map((target) => ({ target, orderKey: null }));
const arrived = (changes: Partial<NewDelivery> = {}) => newDelivery({ receivedAt: Date.now(), ...changes });
const handOver = (...targets: readonly string[]) => ({ targets, owner: 'me', lease: LEASE });

/** The inbox, with the calls of some methods counted. */
function counting(inbox: Inbox) {
  const calls = { claim: 0, handOver: 0 };
  const counted: Inbox = {
    ...inbox,
    claim: (...args) => {
      calls.claim++;
      return inbox.claim(...args);
    },
    appendAll: (deliveries, handOvers = []) => {
      if (isHandingOver(handOvers)) calls.handOver++;
      return inbox.appendAll(deliveries, handOvers);
    },
  };
  return { counted, calls };
}

const isHandingOver = (handOvers: readonly unknown[]) => handOvers.some((each) => each !== undefined);

/** Stores one delivery. */
async function appendHandedOver(inbox: Inbox, delivery: NewDelivery, handedOver: HandOver) {
  const [result] = await inbox.appendAll([delivery], [handedOver]);
  assert.ok(result !== undefined && !(result instanceof Error));
  return result;
}

/** What a target gets of a delivery. */
const fieldsOf = ({
  id,
  source,
  event,
  dataPointer,
  contentType,
  headers,
  trace,
  body,
  receivedAt,
}: StoredDelivery) => ({
  ...{ id, source, event, dataPointer, contentType, receivedAt },
  headers: headers ?? null,
  trace: trace ?? null,
  body: Buffer.from(body).toString(),
});

for (const [engine, open] of Object.entries(engines)) {
  describe(`handing over in ${engine}`, () => {
    test('a job is stored as claimed, and nobody else gets it until its lease ends', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const delivery = arrived({ jobs: plain('t', 'u', 'v') });
      const { appended, jobs } = await appendHandedOver(inbox, delivery, handOver('t', 'v'));
      assert.equal(appended, 'stored');
      assert.deepEqual(
        jobs.map(({ target, attempt, crashes, ordered }) => [target, attempt, crashes, ordered]),
        [
          ['t', 1, 0, false],
          ['v', 1, 0, false],
        ],
      );
      assert.deepEqual(await inbox.due(['t', 'u', 'v']), ['u']);
      assert.deepEqual(ids(await inbox.claim('u', 9, 'other', LEASE)), [delivery.id]);
      for (const target of ['t', 'v']) assert.deepEqual(await inbox.claim(target, 9, 'other', LEASE), []);
      const [first, second] = jobs;
      assert.ok(first && second);
      assert.equal(await inbox.settle(first, 'me', { kind: 'done' }), true);
      const now = Date.now() + 2 * LEASE;
      const [taken] = await inbox.claim('v', 9, 'other', LEASE, { now });
      assert.deepEqual([taken?.job, taken?.attempt, taken?.crashes], [second.job, 1, 1]);
      assert.equal(await inbox.settle(second, 'me', { kind: 'done' }, now), false, 'it is fenced off');
      assert.ok(taken && (await inbox.settle(taken, 'other', { kind: 'dead', error: 'x' }, now)));
      const found = await deliveries.find(delivery.id);
      assert.deepEqual(
        found?.jobs.map(({ target, status }) => [target, status]),
        [
          ['t', 'done'],
          ['u', 'open'],
          ['v', 'dead'],
        ].map(([target, status]) => [target, status === 'open' ? 'processing' : status]),
      );
    });

    test('a duplicate hands over nothing, and neither does one that revives a dead job', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const known = () => arrived({ dedupKey: 'key' });
      const { jobs } = await appendHandedOver(inbox, known(), handOver('t'));
      assert.deepEqual(await appendHandedOver(inbox, known(), handOver('t')), {
        appended: 'duplicate',
        jobs: [],
      });
      assert.ok(jobs[0] && (await inbox.settle(jobs[0], 'me', { kind: 'dead', error: 'x' })));
      assert.deepEqual(await appendHandedOver(inbox, known(), handOver('t')), {
        appended: 'revived',
        jobs: [],
      });
      assert.equal((await inbox.claim('t', 9, 'other', LEASE)).length, 1);
    });

    test('beside a job with rules the others are claimed or handed over, and none is lost', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const jobs = [
        ...plain('t'),
        { target: 'u', orderKey: 'k' },
        { target: 'w', orderKey: null, priority: 3 },
      ];
      const given = await appendHandedOver(inbox, arrived({ jobs }), handOver('t'));
      const rest = await Promise.all(['t', 'u', 'w'].map((each) => inbox.claim(each, 9, 'other', LEASE)));
      assert.deepEqual([...given.jobs, ...rest.flat()].map(({ target }) => target).toSorted(), [
        't',
        'u',
        'w',
      ]);
    });

    test(
      'while a target keeps up nothing is claimed, and its first attempt gets what a later one reads',
      SOON,
      async () => {
        await using database = await open();
        const { counted, calls } = counting(database.current.inbox);
        const seen: ClaimedJob[] = [];
        await using running = startDispatcher(
          counted,
          (job) => {
            seen.push(job);
            if (job.attempt === 1) throw new Error('once more');
          },
          { interval: HOUR },
        );
        let given = 0;
        const add = (changes: Partial<NewDelivery>) => {
          given++;
          return running.dispatcher.append(arrived(changes));
        };
        await waitFor('the first look', async () => {
          await add({ headers: '{"a":"b"}', source: 's', dataPointer: '/x' });
          return calls.handOver > 0;
        });
        const before = calls.claim;
        for (let i = 0; i < 20; i++) {
          const handled = running.settled.length;
          await add({ event: `e${i}`, contentType: null });
          await waitFor('its attempt', () => running.settled.length > handled);
        }
        // A look that had begun may end with one more claim.
        assert.ok(calls.claim - before <= 1, `${calls.claim - before} claims for 20 deliveries`);
        await waitFor('all to be handled', () => {
          running.dispatcher.wake('t');
          return running.settled.filter(({ outcome }) => outcome === 'done').length === given;
        });
        for (const first of seen.filter(({ attempt }) => attempt === 1)) {
          const later = seen.find(({ job, attempt }) => job === first.job && attempt === 2);
          assert.ok(later);
          assert.deepEqual(fieldsOf(first.delivery), fieldsOf(later.delivery));
        }
      },
    );

    test('an event that is stored as another text is read first', SOON, async () => {
      await using database = await open();
      const { counted, calls } = counting(database.current.inbox);
      const events: (string | null)[] = [];
      await using running = startDispatcher(counted, ({ delivery: { event } }) => void events.push(event));
      for (let i = 1; i <= 5; i++) {
        await running.dispatcher.append(arrived({ event: 'a\ud800' }));
        await waitFor('its attempt', () => running.settled.length === i);
      }
      assert.equal(calls.handOver, 0);
      assert.deepEqual(new Set(events), new Set(['a\ufffd']));
    });

    test('behind a backlog nothing is handed over, so the oldest come first', SOON, async () => {
      await using database = await open();
      const { counted } = counting(database.current.inbox);
      const { attempts, run } = manualTarget();
      await using running = startDispatcher(counted, run, { target: { concurrency: 2 } });
      const given: string[] = [];
      for (let i = 0; i < 12; i++) {
        const delivery = arrived();
        given.push(delivery.id);
        await running.dispatcher.append(delivery);
      }
      for (let i = 0; i < given.length; i++) {
        const next = await waitFor('the next attempt', () => attempts[i]);
        assert.ok(attempts.length <= i + 2);
        next.end();
        await waitFor('its end', () => running.settled.length === i + 1);
      }
      assert.deepEqual(
        attempts.map(({ id }) => id),
        given,
      );
    });

    test('behind jobs that wait for a gate nothing is handed over', SOON, async () => {
      await using database = await open();
      let now = 0;
      const gate = new ClaimRateLimit({ perMs: 1, burst: 1 }, () => now);
      const done: string[] = [];
      await using running = startDispatcher(
        database.current.inbox,
        ({ delivery: { id } }) => void done.push(id),
        { target: { rateLimit: gate }, interval: HOUR },
      );
      const given: string[] = [];
      const add = async () => {
        const delivery = arrived();
        given.push(delivery.id);
        await running.dispatcher.append(delivery);
      };
      await add();
      await waitFor('the first to use up the gate', () => running.settled.length === 1);
      await add();
      // The gate is free again before its timer has told so.
      now = 1;
      await add();
      await waitFor('all to be handled', () => {
        now++;
        running.dispatcher.wake('t');
        return running.settled.length === 3;
      });
      assert.deepEqual(done, given);
    });

    test('what is being stored when its worker stops is released, uncounted', SOON, async () => {
      await using database = await open();
      const { inbox } = database.current;
      const stored = Promise.withResolvers<void>();
      const goOn = Promise.withResolvers<void>();
      const late: Inbox = {
        ...inbox,
        async appendAll(deliveries, handOvers = []) {
          const result = await inbox.appendAll(deliveries, handOvers);
          if (!isHandingOver(handOvers)) return result;
          stored.resolve();
          await goOn.promise;
          return result;
        },
      };
      let begun = 0;
      await using running = startDispatcher(late, () => void begun++);
      let appending: Promise<unknown> = Promise.resolve();
      await waitFor('a delivery to be handed over', async () => {
        const delivery = arrived();
        appending = running.dispatcher.append(delivery);
        const handed = await Promise.race([stored.promise.then(() => true), appending.then(() => false)]);
        if (!handed) await waitFor('its end', async () => (await inbox.backlog()).open === 0);
        return handed;
      });
      const before = begun;
      const stopping = running.stop(new AbortController().signal);
      goOn.resolve();
      await Promise.all([appending, stopping]);
      assert.equal(begun, before);
      const [job] = await inbox.claim('t', 9, 'other', LEASE);
      assert.deepEqual([job?.attempt, job?.crashes], [1, 0]);
    });

    test('successes that are recorded together are each fenced off for themselves', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      if (inbox.settleDone === undefined) return;
      const given = [arrived(), arrived(), arrived()];
      for (const each of given) await inbox.append(each);
      const jobs = await inbox.claim('t', 9, 'me', LEASE);
      const [, lost] = jobs;
      assert.ok(lost && (await inbox.settle(lost, 'me', { kind: 'dead', error: 'x' })));
      const answer = { status: 200, body: 'thanks' };
      const successes = jobs.map((job, i) => {
        return { job, trace: { duration: i, answer: i === 0 ? null : answer, kept: 9 } };
      });
      assert.deepEqual(await inbox.settleDone(successes, 'me'), [true, false, true]);
      assert.deepEqual(await inbox.settleDone(successes, 'me'), [false, false, false]);
      const found = await Promise.all(given.map(({ id }) => deliveries.find(id)));
      assert.deepEqual(
        found.map((each) => {
          const last = each?.jobs[0]?.history.at(-1);
          return [each?.status, last?.duration, last?.answer];
        }),
        [
          ['done', 0, null],
          ['dead', undefined, undefined],
          ['done', 2, answer],
        ],
      );
    });
  });
}
