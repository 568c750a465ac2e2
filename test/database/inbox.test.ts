import assert from 'node:assert/strict';
import { randomBytes, randomUUIDv7 } from 'node:crypto';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { NewDelivery } from '../../src/inbox/delivery.ts';
import type { Appended, Inbox } from '../../src/inbox/inbox.ts';
import { engines } from '../support/databases.ts';

const NOW = 1_700_000_000_000;
const LATER = NOW + 1_000;
const LEASE_END = NOW + 5_000;

function delivery(changes: Partial<NewDelivery> = {}): NewDelivery {
  return {
    id: randomUUIDv7(),
    source: '',
    event: 'e',
    dataPointer: '/data',
    contentType: 'application/json',
    body: Buffer.from('{"event":"e","data":1}'),
    receivedAt: NOW,
    dedupKey: null,
    jobs: [{ target: 't', orderKey: null }],
    ...changes,
  };
}

const claim = (inbox: Inbox, limit = 10, owner = 'me', now = LATER) =>
  inbox.claim('t', limit, owner, now, LEASE_END);
const ids = (jobs: readonly { readonly delivery: { readonly id: string } }[]) =>
  jobs.map(({ delivery: { id } }) => id);

for (const [engine, open] of Object.entries(engines)) {
  describe(`inbox in ${engine}`, () => {
    test('due jobs are claimed once, oldest first, with the delivery byte for byte', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const body = Buffer.from([0x7b, 0x22, 0xc3, 0xa9, 0x22, 0x3a, 0x31, 0x65, 0x34, 0x30, 0x30, 0x7d]);
      const three = [delivery({ body }), delivery({ source: 's', event: null }), delivery()];
      for (const each of three) assert.equal(await inbox.append(each), 'stored');
      await inbox.append(delivery({ jobs: [] }));
      const [first, ...rest] = [...(await claim(inbox, 2)), ...(await claim(inbox))];
      assert.deepEqual(
        ids([first, ...rest].filter((job) => job !== undefined)),
        three.map(({ id }) => id),
      );
      assert.deepEqual(Buffer.from(first?.delivery.body ?? []), body);
      const { body: _body, ...stored } = first?.delivery ?? {};
      const { body: _sent, dedupKey: _key, jobs: _jobs, ...sent } = three[0] ?? {};
      assert.deepEqual(stored, sent);
      assert.equal(first?.attempt, 1);
      assert.deepEqual(await claim(inbox), []);
    });

    test('each target has a job of its own', async () => {
      await using database = await open();
      const { inbox } = database.current;
      await inbox.append(delivery({ jobs: ['t', 'u'].map((target) => ({ target, orderKey: null })) }));
      assert.deepEqual([...(await inbox.due(['t', 'u', 'v'], LATER))].sort(), ['t', 'u']);
      assert.equal((await claim(inbox)).length, 1);
      assert.deepEqual(await inbox.due(['t', 'u'], LATER), ['u']);
      assert.equal((await inbox.claim('u', 10, 'me', LATER, LEASE_END)).length, 1);
    });

    test('done and dead jobs are over, a retry waits for its time, a released one does not count', async () => {
      await using database = await open();
      const { inbox } = database.current;
      for (let i = 0; i < 4; i++) await inbox.append(delivery());
      const [a, b, c, d] = await claim(inbox);
      assert.ok(a && b && c && d);
      assert.equal(await inbox.settle(a, 'me', { kind: 'done' }, LATER), true);
      assert.equal(await inbox.settle(b, 'me', { kind: 'dead', error: 'x' }, LATER), true);
      assert.equal(
        await inbox.settle(c, 'me', { kind: 'retry', dueAt: LATER + 500, error: 'x' }, LATER),
        true,
      );
      assert.equal(await inbox.settle(d, 'me', { kind: 'released' }, LATER), true);
      const now = await claim(inbox);
      assert.deepEqual(
        now.map(({ job, attempt }) => [job, attempt]),
        [[d.job, 1]],
      );
      const then = await claim(inbox, 10, 'me', LATER + 500);
      assert.deepEqual(
        then.map(({ job, attempt }) => [job, attempt]),
        [[c.job, 2]],
      );
    });

    test('a lease ends, another owner takes over, and the first one is fenced off', async () => {
      await using database = await open();
      const { inbox } = database.current;
      await inbox.append(delivery());
      const [mine] = await claim(inbox, 10, 'first');
      assert.ok(mine);
      assert.deepEqual(await claim(inbox, 10, 'second', LEASE_END - 1), []);
      const [theirs] = await inbox.claim('t', 10, 'second', LEASE_END, LEASE_END + 5_000);
      assert.equal(theirs?.attempt, 2);
      assert.equal(await inbox.settle(mine, 'first', { kind: 'done' }, LEASE_END), false);
      assert.ok(theirs && (await inbox.settle(theirs, 'second', { kind: 'done' }, LEASE_END)));
      assert.deepEqual(await claim(inbox, 10, 'third', LEASE_END + 60_000), []);
    });

    test('the same owner is fenced off from its own earlier claim', async () => {
      await using database = await open();
      const { inbox } = database.current;
      await inbox.append(delivery());
      const [early] = await claim(inbox);
      const [late] = await inbox.claim('t', 10, 'me', LEASE_END, LEASE_END + 5_000);
      assert.ok(early && late);
      assert.equal(await inbox.settle(early, 'me', { kind: 'done' }, LEASE_END), false);
      assert.equal(await inbox.settle(late, 'me', { kind: 'done' }, LEASE_END), true);
    });

    test('a renewed lease holds', async () => {
      await using database = await open();
      const { inbox } = database.current;
      await inbox.append(delivery());
      const [job] = await claim(inbox);
      await inbox.append(delivery());
      await inbox.claim('t', 1, 'me', LATER, LEASE_END);
      await inbox.renew('me', [job?.job ?? 0], LEASE_END + 5_000);
      const other = await inbox.claim('t', 10, 'other', LEASE_END, LEASE_END + 60_000);
      assert.equal(other.length, 1, 'only the job that is named is renewed');
      assert.equal((await claim(inbox, 10, 'other', LEASE_END + 5_000)).length, 1);
    });

    test('a duplicate is stored and handled once; one of a dead delivery revives it', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const append = (source: string): Promise<Appended> => inbox.append(delivery({ source, dedupKey: 'k' }));
      assert.deepEqual(
        [await append('s'), await append('s'), await append('other')],
        ['stored', 'duplicate', 'stored'],
      );
      const [job, other] = await claim(inbox);
      assert.ok(job && other && (await claim(inbox)).length === 0);
      assert.equal(await append('s'), 'duplicate');
      await inbox.settle(job, 'me', { kind: 'dead', error: 'x' }, LATER);
      assert.equal(await append('s'), 'revived');
      const [revived] = await claim(inbox);
      assert.deepEqual([revived?.delivery.id, revived?.attempt], [job.delivery.id, 1]);
      assert.ok(revived && (await inbox.settle(revived, 'me', { kind: 'done' }, LATER)));
      assert.equal(await append('s'), 'duplicate');
      assert.deepEqual(await claim(inbox), []);
    });

    test('jobs with one key are claimed one after the other, other keys meanwhile', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const keyed = (orderKey: string | null) => delivery({ jobs: [{ target: 't', orderKey }] });
      const all = [keyed('a'), keyed('a'), keyed('b'), keyed(null), keyed(null)];
      for (const each of all) await inbox.append(each);
      const first = await claim(inbox);
      assert.deepEqual(
        ids(first),
        [0, 2, 3, 4].map((i) => all[i]?.id),
      );
      const head = first[0];
      assert.ok(head);
      await inbox.settle(head, 'me', { kind: 'retry', dueAt: LATER + 9_000, error: 'x' }, LATER);
      assert.deepEqual(await claim(inbox), [], 'a retry keeps its place');
      const [again] = await inbox.claim('t', 10, 'me', LATER + 9_000, LATER + 20_000);
      assert.ok(again && again.job === head.job);
      await inbox.settle(again, 'me', { kind: 'done' }, LATER);
      assert.deepEqual(ids(await claim(inbox)), [all[1]?.id]);
    });

    test('what can be claimed is found behind any number of jobs that wait for their order', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const keyed = (orderKey: string | null, receivedAt: number) =>
        inbox.append(delivery({ receivedAt, jobs: [{ target: 't', orderKey }] }));
      for (let i = 0; i < 1_200; i += 100) {
        await Promise.all(Array.from({ length: 100 }, () => keyed('many', NOW)));
      }
      for (const key of ['a', null, 'a', 'b']) await keyed(key, NOW + 1);
      const first = await claim(inbox, 2);
      const rest = await claim(inbox, 10);
      assert.deepEqual([first.length, rest.length], [2, 2], 'one of each key, and the one without');
      assert.deepEqual(await claim(inbox, 10), []);
      const [head] = first;
      assert.ok(head && (await inbox.settle(head, 'me', { kind: 'done' }, LATER)));
      const [next, ...others] = await claim(inbox, 10);
      assert.deepEqual([next?.job, others.length], [head.job + 1, 0]);
    });

    test('a dead job that is opened again waits for the one of its order that is in hand', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const jobs = [{ target: 't', orderKey: 'a' }];
      for (let i = 0; i < 3; i++) await inbox.append(delivery({ jobs }));
      const [first] = await claim(inbox);
      assert.ok(first && (await inbox.settle(first, 'me', { kind: 'dead', error: 'x' }, LATER)));
      const [second] = await claim(inbox);
      assert.ok(second);
      assert.equal(await deliveries.replay(first.delivery.id, jobs, LATER), true);
      assert.deepEqual(await claim(inbox), []);
      assert.ok(await inbox.settle(second, 'me', { kind: 'done' }, LATER));
      const [again] = await claim(inbox);
      assert.equal(again?.job, first.job);
    });

    test('a dead job that is opened again does not wait for a lease that has ended', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const jobs = [{ target: 't', orderKey: 'a' }];
      for (let i = 0; i < 2; i++) await inbox.append(delivery({ jobs }));
      const [first] = await claim(inbox);
      assert.ok(first && (await inbox.settle(first, 'me', { kind: 'dead', error: 'x' }, LATER)));
      const [second] = await claim(inbox);
      assert.equal(await deliveries.replay(first.delivery.id, jobs, LATER), true);
      assert.deepEqual(await claim(inbox, 10, 'other', LEASE_END - 1), []);
      const claimed = await inbox.claim('t', 10, 'other', LEASE_END, LEASE_END + 5_000);
      assert.deepEqual(ids(claimed), [first.delivery.id]);
      assert.ok(claimed[0] && (await inbox.settle(claimed[0], 'other', { kind: 'done' }, LEASE_END)));
      const [next] = await inbox.claim('t', 10, 'other', LEASE_END, LEASE_END + 5_000);
      assert.deepEqual([next?.job, next?.attempt], [second?.job, 2]);
    });

    test('any text can be an event, a source, a key, a target or an error', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 8 });
      const odd = fc.oneof(
        text,
        fc.constantFrom('\0', '\u0010', '\u00100', '\0\u00101', 'sha256:', '"', '\\', '{}', 'NULL'),
      );
      await fc.assert(
        fc.asyncProperty(odd, odd, odd, odd, odd, async (event, source, key, target, error) => {
          const jobs = [{ target, orderKey: key }];
          const given = delivery({
            event,
            source,
            dedupKey: `${key}${randomUUIDv7()}`,
            jobs,
            contentType: key,
          });
          assert.equal(await inbox.append(given), 'stored');
          assert.equal(await inbox.append({ ...given, id: randomUUIDv7() }), 'duplicate');
          assert.deepEqual(await inbox.due([`${target}x`, target], LATER), [target]);
          const [job] = await inbox.claim(target, 1, 'me', LATER, LEASE_END);
          assert.deepEqual(
            [job?.delivery.event, job?.delivery.source, job?.delivery.contentType],
            [event, source, key],
          );
          assert.ok(job && (await inbox.settle(job, 'me', { kind: 'dead', error }, LATER)));
          assert.equal((await deliveries.find(given.id))?.jobs[0]?.error, error);
          const found = await deliveries.list({ event, source, status: 'dead' }, 1);
          assert.equal(found.items[0]?.id, given.id);
        }),
        { numRuns: 60 },
      );
    });

    test('keys of any length are told apart, and dead ends of one are not those of another', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const long = randomBytes(8_000).toString('hex');
      const keyed = (key: string) => delivery({ dedupKey: key, jobs: [{ target: 't', orderKey: key }] });
      assert.equal(await inbox.append(keyed(`${long}a`)), 'stored');
      assert.equal(await inbox.append(keyed(`${long}b`)), 'stored');
      assert.equal(await inbox.append(keyed(`${long}a`)), 'duplicate');
      assert.equal((await claim(inbox)).length, 2);
    });

    test('bodies of any bytes and sizes that are stored at the same time come back byte for byte', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const sizes = [0, 1, 2, 255, 3_000, 1_000_000, 0, 7];
      const given = sizes.map((size) => delivery({ body: randomBytes(size) }));
      await Promise.all(given.map((each) => inbox.append(each)));
      const claimed = await claim(inbox, 20);
      assert.deepEqual(ids(claimed), ids(given.map((each) => ({ delivery: each }))));
      for (const [i, { delivery: got }] of claimed.entries()) {
        assert.ok(Buffer.from(got.body).equals(given[i]?.body ?? Buffer.alloc(1)), `body ${i}`);
        assert.equal((await deliveries.find(got.id))?.size, sizes[i]);
      }
    });

    test('claims at the same time share the jobs among them', async () => {
      await using database = await open();
      const { inbox } = database.current;
      await Promise.all(Array.from({ length: 100 }, () => inbox.append(delivery())));
      const claims = await Promise.all(Array.from({ length: 10 }, (_, i) => claim(inbox, 15, `owner ${i}`)));
      const claimed = ids(claims.flat());
      assert.equal(claimed.length, 100);
      assert.equal(new Set(claimed).size, 100);
    });

    test('what no process runs any more is given up, and can be replayed', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const gone = delivery({ jobs: ['gone', 't'].map((target) => ({ target, orderKey: null })) });
      const fresh = delivery({ receivedAt: LATER, jobs: [{ target: 'gone', orderKey: null }] });
      for (const each of [gone, fresh]) await inbox.append(each);
      const abandon = (before: number, limit = 10) => inbox.abandon(before, limit, 'nobody', before + 1);
      assert.deepEqual(await abandon(LATER + 9), [], 'nobody has looked yet');
      await inbox.attend(['t'], NOW);
      assert.deepEqual(await abandon(NOW - 1), [], 'looked at for the first time just now');
      await inbox.attend(['t', 't'], NOW + 500);
      assert.deepEqual(await abandon(NOW), ['gone'], 'not the one that was due later, nor what is run');
      const job = (await deliveries.find(gone.id))?.jobs.find(({ target }) => target === 'gone');
      assert.deepEqual([job?.status, job?.error, job?.finishedAt], ['dead', 'nobody', NOW + 1]);
      assert.equal((await deliveries.find(fresh.id))?.status, 'pending');
      assert.deepEqual(await inbox.backlog(), { open: 2, dead: 1, oldestAt: NOW });

      await inbox.attend(['gone', 't'], LATER + 1);
      assert.deepEqual(await abandon(LATER), [], 'somebody has it again');
      await inbox.attend(['gone'], NOW);
      assert.deepEqual(await abandon(LATER), [], 'a clock that is behind takes nothing back');
      const [other] = await claim(inbox);
      assert.ok(other && (await inbox.settle(other, 'me', { kind: 'done' }, LATER)));
      const again = [{ target: 'gone', orderKey: null }];
      assert.equal(await deliveries.replay(gone.id, again, LATER + 2), true);
      assert.equal((await inbox.claim('gone', 10, 'me', LATER + 2, LEASE_END)).length, 2);
    });

    test('what somebody holds is not given up before its lease has ended, and then only so much at once', async () => {
      await using database = await open();
      const { inbox } = database.current;
      await inbox.attend([], NOW - 9);
      for (let i = 0; i < 3; i++) await inbox.append(delivery());
      const [job] = await claim(inbox, 1);
      await inbox.attend([], NOW);
      assert.deepEqual(await inbox.abandon(LATER, 1, 'x', LATER), ['t']);
      assert.deepEqual(await inbox.abandon(LATER, 9, 'x', LATER), ['t']);
      assert.deepEqual(await inbox.abandon(LEASE_END - 1, 9, 'x', LEASE_END), []);
      assert.deepEqual(await inbox.abandon(LEASE_END, 9, 'x', LEASE_END), ['t']);
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
      for (let i = 0; i < 3; i++) await inbox.append(delivery({ jobs: targets }));
      await inbox.attend(names.slice(0, 2), NOW);
      await inbox.attend(names.slice(0, 2), LATER);
      const gone = await inbox.abandon(NOW, 1_000, 'x', LATER);
      assert.deepEqual([...new Set(gone)].sort(), names.slice(2).sort());
      assert.equal(gone.length, 3 * 8);
    });

    test('the backlog counts what is open and dead, with the age of the oldest', async () => {
      await using database = await open();
      const { inbox } = database.current;
      assert.deepEqual(await inbox.backlog(), { open: 0, dead: 0, oldestAt: undefined });
      await inbox.append(delivery({ receivedAt: NOW - 7 }));
      await inbox.append(delivery());
      const [oldest] = await claim(inbox, 1);
      assert.deepEqual(await inbox.backlog(), { open: 2, dead: 0, oldestAt: NOW - 7 });
      assert.ok(oldest && (await inbox.settle(oldest, 'me', { kind: 'dead', error: 'x' }, LATER)));
      assert.deepEqual(await inbox.backlog(), { open: 1, dead: 1, oldestAt: NOW });
    });

    test('pruning removes what is old and not open', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const done = delivery();
      const dead = delivery();
      const unhandled = delivery({ jobs: [] });
      const opened = delivery();
      for (const each of [done, dead, unhandled, opened]) await inbox.append(each);
      const [a, b] = await claim(inbox, 2);
      assert.ok(a && b);
      await inbox.settle(a, 'me', { kind: 'done' }, LATER);
      await inbox.settle(b, 'me', { kind: 'dead', error: 'x' }, LATER);
      assert.equal(await inbox.prune(NOW, 10, false), 0, 'not old enough');
      assert.equal(await inbox.prune(NOW + 1, 10, true), 1);
      assert.equal(await deliveries.find(done.id), undefined);
      assert.equal(await inbox.prune(NOW + 1, 1, false), 1);
      assert.equal(await inbox.prune(NOW + 1, 10, false), 1);
      assert.deepEqual(
        (await deliveries.list({}, 10)).items.map(({ id }) => id),
        [opened.id],
      );
      assert.ok((await inbox.size()) > 0);
    });
  });
}
