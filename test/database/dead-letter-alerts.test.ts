import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { NewDelivery } from '../../src/inbox/delivery.ts';
import { DeliveryIds } from '../../src/inbox/delivery.ts';
import type { Inbox } from '../../src/inbox/inbox.ts';
import { storeAlerts } from '../../src/inbox/producers.ts';
import type { Database } from '../../src/sql/database.ts';
import { LATER } from '../support/claim-jobs.ts';
import { engines } from '../support/databases.ts';
import { newDelivery } from '../support/new-delivery.ts';

const SETTLING = 1_000;

const INTERVAL = 60_000;

/** Has `count` jobs of a target die at a time. */
async function kill(inbox: Inbox, target: string, count: number, at: number) {
  for (let i = 0; i < count; i++) await inbox.append(newDelivery({ jobs: [{ target, orderKey: null }] }));
  for (const job of await inbox.claim(target, count, 'me', 1e12, { now: LATER })) {
    await inbox.settle(job, 'me', { kind: 'dead', error: 'x' }, at);
  }
}

function alertsOf({ inbox }: Database) {
  const ids = new DeliveryIds();
  const stored: NewDelivery[] = [];
  return {
    stored,
    /** Looks for dead letters as a process does at a time; gives what the new alerts say. */
    async at(now: number) {
      stored.length = 0;
      const clocked = { ...inbox, clock: () => now };
      await storeAlerts(
        { inbox: clocked, interval: INTERVAL, onStored: (alert) => void stored.push(alert) },
        ids,
      );
      const said = stored.map(({ body }) => JSON.parse(Buffer.from(body).toString()).data);
      return said.map(({ target, dead }) => `${target} ${dead}`).toSorted();
    },
  };
}

for (const [engine, open] of Object.entries(engines)) {
  describe(`alerts about dead letters in ${engine}`, () => {
    test('one for each target and interval, with how many have died since the last one', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const alerts = alertsOf(database.current);
      await kill(inbox, 'handler:a', 2, LATER);
      await kill(inbox, 'forward:b\0', 1, LATER + 10);
      assert.deepEqual(await alerts.at(LATER + SETTLING - 1), [], 'commits under way may add to it');
      assert.deepEqual(await alerts.at(LATER + SETTLING), ['handler:a 2']);
      assert.deepEqual(await alerts.at(LATER + SETTLING + 10), ['forward:b\0 1']);
      await kill(inbox, 'handler:a', 3, LATER + 20);
      assert.deepEqual(await alerts.at(LATER + SETTLING + INTERVAL - 1), []);
      assert.deepEqual(await alerts.at(LATER + SETTLING + INTERVAL), ['handler:a 3']);
      assert.deepEqual(await alerts.at(LATER + SETTLING + 9 * INTERVAL), [], 'nothing has died since');
    });

    test('of several processes that look at the same time one stores it', async () => {
      await using database = await open();
      await kill(database.current.inbox, 'handler:a', 1, LATER);
      const processes = Array.from({ length: 5 }, () => alertsOf(database.current));
      const said = await Promise.all(processes.map((each) => each.at(LATER + SETTLING)));
      assert.deepEqual(said.flat(), ['handler:a 1']);
      const { items } = await database.current.deliveries.list({ source: 'portico:alert' }, 9);
      assert.equal(items.length, 1);
    });

    test('never about an alert, and not about what was replayed or discarded', async () => {
      await using database = await open();
      const { inbox, deliveries } = database.current;
      const alerts = alertsOf(database.current);
      await kill(inbox, 'alert:dead', 1, LATER);
      await kill(inbox, 'handler:a', 1, LATER);
      const [item] = (await deliveries.list({ status: 'dead' }, 1)).items;
      assert.ok(await deliveries.discard(item?.id ?? '', LATER + 1));
      assert.deepEqual(await alerts.at(LATER + SETTLING), []);
    });
  });
}
