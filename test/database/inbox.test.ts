import assert from 'node:assert/strict';
import { randomBytes, randomUUIDv7 } from 'node:crypto';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { NewDelivery } from '../../src/inbox/delivery.ts';
import type { Appended } from '../../src/inbox/inbox.ts';
import { claim, ids, LATER, LEASE_END } from '../support/claim-jobs.ts';
import { engines } from '../support/databases.ts';
import { NOW, newDelivery } from '../support/new-delivery.ts';
import { rounds } from '../support/proof-settings.ts';
import { anyCharacter } from '../support/random.ts';

for (const [engine, open] of Object.entries(engines)) {
  describe(`inbox in ${engine}`, () => {
    test('due jobs are claimed once, oldest first, with the delivery byte for byte', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const body = Buffer.from([0x7b, 0x22, 0xc3, 0xa9, 0x22, 0x3a, 0x31, 0x65, 0x34, 0x30, 0x30, 0x7d]);
      const headers = JSON.stringify({ 'x-event': 'caf\u00e9\0' });
      const three = [
        newDelivery({
          body,
          headers,
          senderEvent: 's\0',
          trace: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01 k=v`,
        }),
        newDelivery({ source: 's', event: null }),
        newDelivery(),
      ];
      for (const each of three) assert.equal(await inbox.append(each), 'stored');
      await inbox.append(newDelivery({ jobs: [] }));
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

    test('deliveries that are stored together succeed or fail alone', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const results = async (...deliveries: readonly NewDelivery[]) =>
        (await inbox.appendAll(deliveries)).map((each) =>
          each instanceof Error ? each.name : each.appended,
        );
      const changed = () => newDelivery({ tenant: { name: 'acme', version: 7 } });
      const known = { dedupKey: 'known' };
      assert.deepEqual(await results(newDelivery(), newDelivery(known)), ['stored', 'stored']);
      // With keys and without them PostgreSQL has other statements.
      assert.deepEqual(await results(changed(), newDelivery(), changed()), [
        'TenantChangedError',
        'stored',
        'TenantChangedError',
      ]);
      assert.deepEqual(
        await results(
          newDelivery(),
          newDelivery(known),
          changed(),
          newDelivery({ dedupKey: 'new' }),
          newDelivery({ dedupKey: 'new' }),
        ),
        ['stored', 'duplicate', 'TenantChangedError', 'stored', 'duplicate'],
      );
      assert.deepEqual(await results(), []);
      assert.equal((await claim(inbox)).length, 5);
    });

    test('of successes that are recorded together, those of lost leases are not', async () => {
      await using database = await open();
      const { inbox } = database.current;
      for (let i = 0; i < 4; i++) await inbox.append(newDelivery());
      const held = await claim(inbox);
      // Another process has claimed two of them since.
      const taken = await claim(inbox, 2, 'other', LEASE_END);
      const lost = new Set(taken.map(({ job }) => job));
      assert.equal(lost.size, 2);
      const done = held.toReversed().map((job) => inbox.settle(job, 'me', { kind: 'done' }));
      assert.deepEqual(
        await Promise.all(done),
        held.toReversed().map(({ job }) => !lost.has(job)),
      );
      const others = taken.map((job) => inbox.settle(job, 'other', { kind: 'done' }));
      assert.deepEqual(await Promise.all(others), [true, true]);
      assert.equal((await inbox.backlog()).open, 0);
    });

    test('each target has a job of its own', async () => {
      await using database = await open();
      const { inbox } = database.current;
      await inbox.append(newDelivery({ jobs: ['t', 'u'].map((target) => ({ target, orderKey: null })) }));
      assert.deepEqual([...(await inbox.due(['t', 'u', 'v'], LATER))].sort(), ['t', 'u']);
      assert.equal((await claim(inbox)).length, 1);
      assert.deepEqual(await inbox.due(['t', 'u'], LATER), ['u']);
      assert.equal((await inbox.claim('u', 10, 'me', 4_000, { now: LATER })).length, 1);
    });

    test('done and dead jobs are over, a retry waits for its time, a released one does not count', async () => {
      await using database = await open();
      const { inbox } = database.current;
      for (let i = 0; i < 4; i++) await inbox.append(newDelivery());
      const [a, b, c, d] = await claim(inbox);
      assert.ok(a && b && c && d);
      assert.equal(await inbox.settle(a, 'me', { kind: 'done' }, LATER), true);
      assert.equal(await inbox.settle(b, 'me', { kind: 'dead', error: 'x' }, LATER), true);
      assert.equal(await inbox.settle(c, 'me', { kind: 'retry', wait: 500, error: 'x' }, LATER), true);
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
      await inbox.append(newDelivery());
      const [mine] = await claim(inbox, 10, 'first');
      assert.ok(mine);
      assert.deepEqual(await claim(inbox, 10, 'second', LEASE_END - 1), []);
      const [theirs] = await inbox.claim('t', 10, 'second', 5_000, { now: LEASE_END });
      assert.deepEqual([theirs?.attempt, theirs?.crashes], [1, 1]);
      assert.equal(await inbox.settle(mine, 'first', { kind: 'done' }, LEASE_END), false);
      assert.ok(theirs && (await inbox.settle(theirs, 'second', { kind: 'done' }, LEASE_END)));
      assert.deepEqual(await claim(inbox, 10, 'third', LEASE_END + 60_000), []);
    });

    test('the same owner is fenced off from its own earlier claim', async () => {
      await using database = await open();
      const { inbox } = database.current;
      await inbox.append(newDelivery());
      const [early] = await claim(inbox);
      const [late] = await inbox.claim('t', 10, 'me', 5_000, { now: LEASE_END });
      assert.ok(early && late);
      assert.equal(await inbox.settle(early, 'me', { kind: 'done' }, LEASE_END), false);
      assert.equal(await inbox.settle(late, 'me', { kind: 'done' }, LEASE_END), true);
    });

    test('a renewed lease holds', async () => {
      await using database = await open();
      const { inbox } = database.current;
      await inbox.append(newDelivery());
      const [job] = await claim(inbox);
      await inbox.append(newDelivery());
      await inbox.claim('t', 1, 'me', 4_000, { now: LATER });
      await inbox.renew('me', [job?.job ?? 0], 9_000, LATER);
      const other = await inbox.claim('t', 10, 'other', 60_000, { now: LEASE_END });
      assert.equal(other.length, 1, 'only the job that is named is renewed');
      assert.equal((await claim(inbox, 10, 'other', LEASE_END + 5_000)).length, 1);
    });

    test('a duplicate is stored and handled once; one of a dead delivery revives it', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const append = (source: string): Promise<Appended> =>
        inbox.append(newDelivery({ source, dedupKey: 'k' }));
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

    test('any text can be an event, a source, a key, a target or an error', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const text = fc.string({ unit: anyCharacter, minLength: 1, maxLength: 8 });
      const odd = fc.oneof(
        text,
        fc.constantFrom('\0', '\u0010', '\u00100', '\0\u00101', 'sha256:', '"', '\\', '{}', 'NULL'),
      );
      await fc.assert(
        fc.asyncProperty(odd, odd, odd, odd, odd, async (event, source, key, target, error) => {
          const jobs = [{ target, orderKey: key }];
          const given = newDelivery({
            event,
            source,
            dedupKey: `${key}${randomUUIDv7()}`,
            jobs,
            contentType: key,
          });
          assert.equal(await inbox.append(given), 'stored');
          assert.equal(await inbox.append({ ...given, id: randomUUIDv7() }), 'duplicate');
          assert.deepEqual(await inbox.due([`${target}x`, target], LATER), [target]);
          const [job] = await inbox.claim(target, 1, 'me', 4_000, { now: LATER });
          assert.deepEqual(
            [job?.delivery.event, job?.delivery.source, job?.delivery.contentType],
            [event, source, key],
          );
          assert.ok(job && (await inbox.settle(job, 'me', { kind: 'dead', error }, LATER)));
          assert.equal((await deliveries.find(given.id))?.jobs[0]?.error, error);
          const found = await deliveries.list({ event, source, status: 'dead' }, 1);
          assert.equal(found.items[0]?.id, given.id);
        }),
        { numRuns: rounds(60) },
      );
    });

    test('keys of any length are told apart, and dead ends of one are not those of another', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const long = randomBytes(8_000).toString('hex');
      const keyed = (key: string) => newDelivery({ dedupKey: key, jobs: [{ target: 't', orderKey: key }] });
      assert.equal(await inbox.append(keyed(`${long}a`)), 'stored');
      assert.equal(await inbox.append(keyed(`${long}b`)), 'stored');
      assert.equal(await inbox.append(keyed(`${long}a`)), 'duplicate');
      assert.equal((await claim(inbox)).length, 2);
    });

    test('bodies of any bytes and sizes that are stored at the same time come back byte for byte', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const sizes = [0, 1, 2, 255, 3_000, 1_000_000, 0, 7];
      const given = sizes.map((size) => newDelivery({ body: randomBytes(size) }));
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
      await Promise.all(Array.from({ length: 100 }, () => inbox.append(newDelivery())));
      const claims = await Promise.all(Array.from({ length: 10 }, (_, i) => claim(inbox, 15, `owner ${i}`)));
      const claimed = ids(claims.flat());
      assert.equal(claimed.length, 100);
      assert.equal(new Set(claimed).size, 100);
    });

    test('the backlog counts what is open and dead, with the age of the oldest', async () => {
      await using database = await open();
      const { inbox } = database.current;
      assert.deepEqual(await inbox.backlog(), { open: 0, dead: 0, oldestAt: undefined });
      await inbox.append(newDelivery({ receivedAt: NOW - 7 }));
      await inbox.append(newDelivery());
      const [oldest] = await claim(inbox, 1);
      assert.deepEqual(await inbox.backlog(), { open: 2, dead: 0, oldestAt: NOW - 7 });
      assert.ok(oldest && (await inbox.settle(oldest, 'me', { kind: 'dead', error: 'x' }, LATER)));
      assert.deepEqual(await inbox.backlog(), { open: 1, dead: 1, oldestAt: NOW });
    });
  });
}
