import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { captureLog } from '../../test/support/log-capture.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import type { Database } from '../database/database.ts';
import { openDatabase } from '../database/open-database.ts';
import { openLog } from '../observability/log.ts';
import type { Delivery } from './delivery.ts';
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

const pending = async ({ inbox }: Database) => (await inbox.claim(1_000)).map(({ id }) => id);

test('a handler gets its delivery with its id, event, data and time', async () => {
  await using database = openDatabase('sqlite::memory:');
  const seen: Delivery[] = [];
  const { dispatcher, settled } = await dispatch(database.inbox, {
    paid: (delivery) => void seen.push(delivery),
  });
  const id = await append(database, 'paid', { amount: 1.5, to: ['ä'] });
  await dispatcher.start();
  await waitFor('the delivery to be settled', () => settled.length === 1);
  assert.deepEqual(seen, [
    { id, event: 'paid', data: { amount: 1.5, to: ['ä'] }, receivedAt: new Date(RECEIVED) },
  ]);
  assert.deepEqual(settled, [{ id, outcome: 'done', error: undefined }]);
  await dispatcher.stop(never);
  assert.equal(await database.inbox.recover(), 0);
  assert.deepEqual(await pending(database), []);
});

test('a handler that throws at once fails its delivery like one that rejects, and others go on', async () => {
  await using database = openDatabase('sqlite::memory:');
  const error = new Error('no');
  const { dispatcher, settled } = await dispatch(database.inbox, {
    throws: () => {
      throw error;
    },
    rejects: () => Promise.reject(error),
    throwsNothing: () => {
      throw undefined;
    },
    works: () => {},
  });
  const ids: string[] = [];
  for (const event of ['throws', 'rejects', 'throwsNothing', 'works'])
    ids.push(await append(database, event));
  await dispatcher.start();
  await waitFor('all to be settled', () => settled.length === ids.length);
  assert.deepEqual(
    ids.map((id) => settled.find((each) => each.id === id)),
    ids.map((id, i) => ({ id, outcome: i < 3 ? 'failed' : 'done', error: i < 2 ? error : undefined })),
  );
  await dispatcher.stop(never);
});

test('an event whose handler is gone is unhandled, not failed', async () => {
  await using database = openDatabase('sqlite::memory:');
  const { dispatcher, settled } = await dispatch(database.inbox, {});
  const id = await append(database, 'toString');
  await dispatcher.start();
  await waitFor('it to be settled', () => settled.length === 1);
  assert.deepEqual(settled, [{ id, outcome: 'unhandled', error: undefined }]);
  await dispatcher.stop(never);
});

/** A handler that takes as long as the test wants. */
function slow() {
  const ended = Promise.withResolvers<void>();
  const state = {
    begun: 0,
    signal: undefined as AbortSignal | undefined,
    finish: ended.resolve,
    fail: ended.reject,
    handler: (_delivery: Delivery, { signal }: { readonly signal: AbortSignal }) => {
      state.begun++;
      state.signal = signal;
      return ended.promise;
    },
  };
  return state;
}

test('a stop waits for the handlers at work and claims nothing more', async () => {
  await using database = openDatabase('sqlite::memory:');
  const work = slow();
  const { dispatcher, settled } = await dispatch(database.inbox, { slow: work.handler });
  const id = await append(database, 'slow');
  await dispatcher.start();
  await waitFor('the handler to begin', () => work.begun === 1);
  let stopped = false;
  const stopping = dispatcher.stop(never).then(() => {
    stopped = true;
  });
  const late = await append(database, 'slow');
  dispatcher.wake();
  assert.deepEqual(await pending(database), [late], 'the dispatcher left it');
  assert.equal(stopped, false);
  assert.equal(work.signal?.aborted, false);
  work.finish();
  await stopping;
  assert.deepEqual(settled, [{ id, outcome: 'done', error: undefined }]);
  assert.equal(work.begun, 1);
});

const unwilling = {
  'that rejects when it is told to end': (_: Delivery, { signal }: { readonly signal: AbortSignal }) =>
    new Promise<void>((_resolve, reject) =>
      signal.addEventListener('abort', () => reject(new Error('told'))),
    ),
  'that does not listen': () => new Promise<void>(() => {}),
};

for (const [kind, handler] of Object.entries(unwilling)) {
  test(`at the deadline a handler ${kind} is told, and its delivery is given back`, async () => {
    await using database = openDatabase('sqlite::memory:');
    let signal: AbortSignal | undefined;
    const { dispatcher, settled, logged } = await dispatch(database.inbox, {
      slow(delivery, context) {
        signal = context.signal;
        return handler(delivery, context);
      },
    });
    const id = await append(database, 'slow');
    await dispatcher.start();
    await waitFor('the handler to begin', () => signal);
    const deadline = new AbortController();
    const stopping = dispatcher.stop(deadline.signal);
    assert.equal(signal?.aborted, false);
    deadline.abort();
    assert.equal(signal?.aborted, true);
    await stopping;
    assert.deepEqual(settled, [], 'it has not failed');
    assert.deepEqual(logged('delivery cannot be settled'), []);
    assert.deepEqual(await pending(database), [id]);
  });
}

test('a stop whose deadline has passed already gives back what it has', async () => {
  await using database = openDatabase('sqlite::memory:');
  const work = slow();
  const { dispatcher } = await dispatch(database.inbox, { slow: work.handler });
  const ids = [await append(database, 'slow'), await append(database, 'slow')];
  await dispatcher.start();
  // The claim is under way: what it brings is given back without its handler being asked.
  await dispatcher.stop(AbortSignal.abort());
  assert.deepEqual(await pending(database), ids);
  assert.equal(work.signal?.aborted ?? true, true);
});

test('what an ended process had in hand is handled after the next start', async () => {
  await using database = openDatabase('sqlite::memory:');
  const id = await append(database, 'paid');
  await database.inbox.claim(1);
  const { dispatcher, settled } = await dispatch(database.inbox, { paid: () => {} });
  await dispatcher.start();
  await waitFor('it to be settled', () => settled.length === 1);
  assert.equal(settled[0]?.id, id);
  await dispatcher.stop(never);
});

test('a wake before the start hands out nothing that the start gives back', {
  todo: 'wake() claims before start() has recovered: a delivery that comes while the doors open is in hand when recover() gives it back, so it is handled twice; wake() should wait for start()',
}, async () => {
  await using database = openDatabase('sqlite::memory:');
  const work = slow();
  const { dispatcher } = await dispatch(database.inbox, { slow: work.handler });
  await append(database, 'slow');
  // The webhook door is open already: a delivery came in.
  dispatcher.wake();
  for (let i = 0; i < 20; i++) await nextTurn();
  await dispatcher.start();
  await waitFor('the handler to begin', () => work.begun > 0);
  work.finish();
  await dispatcher.stop(never);
  assert.equal(work.begun, 1);
});

test('what a handler logs carries the id and the event of its delivery', {
  todo: "HandlerLog promises it (handler.ts), but handlers get the service's own log: give them a child of it",
}, async () => {
  await using database = openDatabase('sqlite::memory:');
  const { dispatcher, settled, logged } = await dispatch(database.inbox, {
    paid: (_delivery, { log }) => log.info({ amount: 1 }, 'counted'),
  });
  const id = await append(database, 'paid');
  await dispatcher.start();
  await waitFor('it to be settled', () => settled.length === 1);
  await dispatcher.stop(never);
  const [entry] = logged('counted');
  assert.deepEqual([entry?.amount, entry?.delivery, entry?.event], [1, id, 'paid']);
});
