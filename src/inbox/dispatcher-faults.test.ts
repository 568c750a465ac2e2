import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import { join } from 'node:path';
import { test } from 'node:test';
import { captureLog } from '../../test/support/log-capture.ts';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { openDatabase } from '../database/open-database.ts';
import { openLog } from '../observability/log.ts';
import { Dispatcher, type DispatcherOptions } from './dispatcher.ts';
import type { DeliveryHandler } from './handler.ts';
import type { Inbox } from './inbox.ts';

const never = new AbortController().signal;
const RECEIVED = 1_700_000_000_000;

interface Settled {
  readonly id: string;
  readonly outcome: string;
  readonly error: unknown;
}

/** A dispatcher over a real inbox, with what it reported. */
async function dispatch(
  inbox: Inbox,
  handlers: Record<string, DeliveryHandler>,
  more?: Partial<DispatcherOptions>,
) {
  const { stream, entries } = captureLog();
  const settled: Settled[] = [];
  const dispatcher = new Dispatcher({
    inbox,
    handlers: new Map(Object.entries(handlers)),
    log: await openLog({ level: 'debug', stream }),
    onSettled: ({ id }, outcome, error) => settled.push({ id, outcome, error }),
    ...more,
  });
  const logged = (message: string) => entries.filter(({ msg }) => msg === message);
  return { dispatcher, settled, logged };
}

async function append(
  { inbox }: { readonly inbox: Inbox },
  event: string,
  data: unknown = null,
): Promise<string> {
  const id = randomUUIDv7();
  const body = Buffer.from(JSON.stringify({ event, data }));
  await inbox.append({ id, event, body, receivedAt: RECEIVED, status: 'pending' });
  return id;
}

test('while deliveries cannot be claimed that is logged and tried again, and they are handled once they can be', async () => {
  await using folder = await temporaryFolder();
  const url = `sqlite:${join(folder.path, 'test.db')}`;
  let database = openDatabase(url);
  // The inbox of whichever connection is open: a store that comes back.
  const inbox: Inbox = {
    append: (delivery) => database.inbox.append(delivery),
    recover: () => database.inbox.recover(),
    claim: (limit) => database.inbox.claim(limit),
    settle: (delivery, status) => database.inbox.settle(delivery, status),
  };
  const { dispatcher, settled, logged } = await dispatch(inbox, { paid: () => {} });
  await dispatcher.start();
  const id = await append(database, 'paid');
  await database[Symbol.asyncDispose]();
  dispatcher.wake();
  await waitFor('the failure to be logged', () => logged('deliveries cannot be claimed').length === 1);
  const [entry] = logged('deliveries cannot be claimed');
  assert.equal(entry?.level, 'error');
  assert.equal(Object(entry?.err).code, 'STORE_UNAVAILABLE');
  database = openDatabase(url);
  await waitFor('it to be settled', () => settled.length === 1);
  assert.equal(settled[0]?.id, id);
  await dispatcher.stop(never);
  await database[Symbol.asyncDispose]();
});

test('a stop does not wait for the next try of a claim that failed', async () => {
  const database = openDatabase('sqlite::memory:');
  const { dispatcher, logged } = await dispatch(database.inbox, {});
  await dispatcher.start();
  await database[Symbol.asyncDispose]();
  dispatcher.wake();
  await waitFor('the failure to be logged', () => logged('deliveries cannot be claimed').length === 1);
  const began = performance.now();
  await dispatcher.stop(never);
  assert.ok(performance.now() - began < 500, 'half of the pause between two tries');
  assert.equal(logged('deliveries cannot be claimed').length, 1);
});

test('a start on a store that cannot answer fails', async () => {
  const database = openDatabase('sqlite::memory:');
  const { dispatcher } = await dispatch(database.inbox, {});
  await database[Symbol.asyncDispose]();
  await assert.rejects(dispatcher.start(), { code: 'STORE_UNAVAILABLE' });
  await dispatcher.stop(never);
});

test('a delivery that cannot be settled is logged with its id, and the stop still ends', async () => {
  const database = openDatabase('sqlite::memory:');
  const work = Promise.withResolvers<void>();
  let begun = false;
  const { dispatcher, settled, logged } = await dispatch(database.inbox, {
    slow() {
      begun = true;
      return work.promise;
    },
  });
  const id = await append(database, 'slow');
  await dispatcher.start();
  await waitFor('the handler to begin', () => begun);
  await database[Symbol.asyncDispose]();
  work.reject(new Error('too late'));
  await dispatcher.stop(never);
  assert.deepEqual(settled, [], 'nothing was recorded, so nothing is reported');
  assert.deepEqual(
    logged('delivery cannot be settled').map(({ delivery }) => delivery),
    [id],
  );
});

test('a listener that throws harms no other delivery', async () => {
  await using database = openDatabase('sqlite::memory:');
  let told = 0;
  const { dispatcher } = await dispatch(
    database.inbox,
    { paid: () => {} },
    {
      concurrency: 1,
      onSettled: () => {
        told++;
        throw new Error('listener');
      },
    },
  );
  await append(database, 'paid');
  await append(database, 'paid');
  await dispatcher.start();
  await waitFor('both to be settled', () => told === 2);
  await dispatcher.stop(never);
  assert.equal(await database.inbox.recover(), 0);
});
