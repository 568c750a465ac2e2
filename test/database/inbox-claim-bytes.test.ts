import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Dispatcher } from '../../src/inbox/dispatch/dispatcher.ts';
import type { Target } from '../../src/inbox/dispatch/target.ts';
import type { Inbox } from '../../src/inbox/inbox.ts';
import { ids } from '../support/claim-jobs.ts';
import { engines } from '../support/databases.ts';
import { newDelivery } from '../support/new-delivery.ts';
import { waitFor } from '../support/wait-for.ts';

const never = new AbortController().signal;
const KEYS = 1_100;

async function append(inbox: Inbox, sizes: readonly number[], target = 't', orderKey: string | null = null) {
  const given = sizes.map((size) =>
    newDelivery({ body: Buffer.alloc(size), receivedAt: Date.now(), jobs: [{ target, orderKey }] }),
  );
  for (const each of given) await inbox.append(each);
  return ids(given.map((delivery) => ({ delivery })));
}

for (const [engine, open] of Object.entries(engines)) {
  describe(`claims bounded by bytes in ${engine}`, () => {
    test('a claim takes the oldest jobs whose bodies fit, and at least one', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const given = await append(inbox, [400, 500, 200, 5_000, 0, 10]);
      const claim = async (maxBytes: number, limit = 10) =>
        ids(await inbox.claim('t', limit, 'me', 60_000, { maxBytes })).map((id) => given.indexOf(id));
      assert.deepEqual(await claim(1_000), [0, 1]);
      assert.deepEqual(await claim(1_000), [2]);
      assert.deepEqual(await claim(0), [3], 'whatever its size');
      assert.deepEqual(await claim(10, 1), [4]);
      assert.deepEqual(await claim(10), [5]);
      assert.deepEqual(await claim(10), []);
    });

    test('behind many jobs that wait for their order the bound holds too', async () => {
      await using database = await open();
      const { inbox } = database.current;
      await inbox.append(newDelivery({ jobs: [{ target: 't', orderKey: 'long' }] }));
      const waiting = Array.from({ length: KEYS }, () =>
        newDelivery({ jobs: [{ target: 't', orderKey: 'long' }] }),
      );
      await Promise.all(waiting.map((each) => inbox.append(each)));
      for (const key of ['a', 'b', 'c']) await append(inbox, [700], 't', key);
      const claim = async (maxBytes: number) =>
        (await inbox.claim('t', 10, 'me', 60_000, { maxBytes })).length;
      assert.equal(await claim(500), 1, 'the first of the long key');
      assert.equal(await claim(500), 1, 'at least one');
      assert.equal(await claim(1_400), 2);
    });

    test('running attempts of all targets hold a bounded number of bytes, and all deliveries are handled', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const names = ['a', 'b', 'c'];
      for (let i = 0; i < 6; i++) for (const name of names) await append(inbox, [10_000], name);
      let [held, most, done, running] = [0, 0, 0, 0];
      const release: (() => void)[] = [];
      const target = (name: string): Target => ({
        name,
        concurrency: 16,
        timeout: 60_000,
        maxAttempts: 3,
        backoff: { base: 0, cap: 0 },
        async run({ delivery: { body } }) {
          held += body.byteLength;
          running++;
          most = Math.max(most, held);
          await new Promise<void>((resolve) => release.push(resolve));
          held -= body.byteLength;
          done++;
        },
      });
      const dispatcher = new Dispatcher({
        inbox,
        targets: names.map(target),
        events: {
          settled() {},
          leaseLost() {},
          overdue() {},
          storeFailed: (error) => assert.fail(String(error)),
        },
        maxBytes: 45_000,
        // Nothing is found by a poll.
        interval: 3_600_000,
        lease: 60_000,
      });
      dispatcher.start();
      try {
        await waitFor('several to run', () => held > 30_000);
        while (done < 18) {
          await waitFor('an attempt', () => release.length > 0);
          const before = done;
          release.shift()?.();
          await waitFor('its end', () => done > before);
        }
      } finally {
        await dispatcher.stop(never);
      }
      assert.equal(running, 18);
      assert.ok(most <= 75_000, `${most} bytes`);
    });
  });
}
