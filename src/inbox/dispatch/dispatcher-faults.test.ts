import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { openDatabase } from '../../sql/open.ts';
import type { Inbox } from '../inbox.ts';
import { Dispatcher } from './dispatcher.ts';
import type { Target } from './target.ts';

type DispatcherOptions = ConstructorParameters<typeof Dispatcher>[0];

// What happens to jobs when the store, a process or a listener fails.

const never = new AbortController().signal;
const soon = { timeout: 300_000 };

function dispatch(
  t: TestContext,
  inbox: Inbox,
  run: Target['run'],
  options: Partial<DispatcherOptions> & { readonly maxAttempts?: number } = {},
) {
  const settled: { readonly id: string; readonly outcome: string }[] = [];
  const lost: string[] = [];
  const failures: unknown[] = [];
  const { maxAttempts = 3, ...others } = options;
  const backoff = { base: 0, cap: 0 };
  const dispatcher = new Dispatcher({
    inbox,
    targets: [{ name: 't', run, concurrency: 16, timeout: 60_000, maxAttempts, backoff }],
    events: {
      settled: ({ delivery: { id } }, outcome) => settled.push({ id, outcome }),
      leaseLost: ({ delivery: { id } }) => lost.push(id),
      overdue: () => {},
      storeFailed: (error) => failures.push(error),
    },
    interval: 5,
    ...others,
  });
  // However a test ends, its timers do.
  t.after(() => dispatcher.stop(AbortSignal.abort()), { timeout: 1_000 });
  return { dispatcher, settled, lost, failures };
}

async function append(inbox: Inbox, orderKey: string | null = null): Promise<string> {
  const id = randomUUIDv7();
  const [source, event, dataPointer, contentType, dedupKey] = ['', 'e', '/data', null, null];
  const body = Buffer.from('{"event":"e"}');
  const delivery = { id, source, event, dataPointer, contentType, body, receivedAt: Date.now(), dedupKey };
  await inbox.append({ ...delivery, jobs: [{ target: 't', orderKey }] });
  return id;
}

/** The inbox of whichever store `current` gives, with some methods of the test's own. */
function inboxOf(current: () => Inbox, own: Partial<Inbox> = {}): Inbox {
  return {
    append: (delivery) => current().append(delivery),
    appendAll: (...args) => current().appendAll(...args),
    idOf: (...args) => current().idOf(...args),
    due: (...args) => current().due(...args),
    waiting: (...args) => current().waiting(...args),
    dueQuarantined: (...args) => current().dueQuarantined(...args),
    claim: (...args) => current().claim(...args),
    renew: (...args) => current().renew(...args),
    settle: (...args) => current().settle(...args),
    settleDone: (...args) => current().settleDone?.(...args) ?? Promise.reject(new Error('none')),
    finish: (...args) => current().finish(...args),
    recordHeartbeat: (targets, now) => current().recordHeartbeat(targets, now),
    expireOrphans: (...args) => current().expireOrphans(...args),
    backlog: () => current().backlog(),
    prune: (...args) => current().prune(...args),
    forgetKeys: (...args) => current().forgetKeys(...args),
    deadLetters: (...args) => current().deadLetters(...args),
    checkpoints: current().checkpoints,
    enqueued: current().enqueued,
    relay: current().relay,
    changeRelay: current().changeRelay,
    clock: () => current().clock(),
    size: () => current().size(),
    ...own,
  };
}

test(
  'a store that cannot answer is reported and asked again, and jobs are done once it can',
  soon,
  async (t) => {
    await using folder = await temporaryFolder();
    const url = `sqlite:${join(folder.path, 'test.db')}`;
    let database = await openDatabase(url);
    const { dispatcher, settled, failures } = dispatch(
      t,
      inboxOf(() => database.inbox),
      () => {},
    );
    const id = await append(database.inbox);
    await database[Symbol.asyncDispose]();
    dispatcher.start();
    await waitFor('two failures to be reported', () => failures.length >= 2);
    for (const error of failures) assert.equal(Object(error).code, 'STORE_UNAVAILABLE');
    database = await openDatabase(url);
    await waitFor('the job to be settled', () => settled.length === 1);
    assert.deepEqual(settled, [{ id, outcome: 'done' }]);
    await dispatcher.stop(never);
    await database[Symbol.asyncDispose]();
  },
);

test('a success that cannot be recorded takes no other one with it', soon, async (t) => {
  await using database = openDatabase('sqlite::memory:');
  let together = 0;
  const inbox = inboxOf(() => database.inbox, {
    settleDone: (successes) => {
      together = Math.max(together, successes.length);
      return Promise.reject(new Error('a damaged page'));
    },
    settle: (...args) =>
      args[0].delivery.id === damaged
        ? Promise.reject(new Error('a damaged page'))
        : database.inbox.settle(...args),
  });
  const damaged = await append(inbox);
  for (let i = 0; i < 5; i++) await append(inbox);
  const { dispatcher, settled, failures } = dispatch(t, inbox, () => {});
  dispatcher.start();
  await waitFor('the others to be settled', () => settled.length === 5);
  await waitFor('the one to be reported', () => failures.length > 0);
  assert.ok(together > 1);
  assert.ok(settled.every(({ id, outcome }) => id !== damaged && outcome === 'done'));
  await dispatcher.stop(never);
});

test('a claim that fails is reported, and the next look claims again', soon, async (t) => {
  await using database = openDatabase('sqlite::memory:');
  let claims = 0;
  const inbox = inboxOf(() => database.inbox, {
    claim: (...args) =>
      ++claims <= 3 ? Promise.reject(new Error('no claim')) : database.inbox.claim(...args),
  });
  const { dispatcher, settled, failures } = dispatch(t, inbox, () => {});
  await append(inbox);
  dispatcher.start();
  await waitFor('the job to be settled', () => settled.length === 1);
  assert.equal(failures.length, 3);
  await dispatcher.stop(never);
});

test('an end that cannot be recorded is reported, and the stop still ends', soon, async (t) => {
  const database = openDatabase('sqlite::memory:');
  const work = Promise.withResolvers<void>();
  let begun = false;
  const { dispatcher, settled, failures } = dispatch(
    t,
    database.inbox,
    () => {
      begun = true;
      return work.promise;
    },
    { interval: 60_000 },
  );
  await append(database.inbox);
  dispatcher.start();
  await waitFor('the attempt to begin', () => begun);
  await database[Symbol.asyncDispose]();
  work.reject(new Error('too late'));
  await dispatcher.stop(never);
  assert.deepEqual(settled, [], 'nothing was recorded, so nothing is reported');
  assert.deepEqual(
    failures.map((error) => Object(error).code),
    ['STORE_UNAVAILABLE'],
  );
});

test('a job whose end was not recorded is tried again while its process works on others', {
  ...soon,
}, async (t) => {
  await using database = openDatabase('sqlite::memory:');
  const long = Promise.withResolvers<void>();
  let settles = 0;
  const inbox = inboxOf(() => database.inbox, {
    settle: (...args) =>
      ++settles === 1 ? Promise.reject(new Error('disk full')) : database.inbox.settle(...args),
  });
  const attempts: string[] = [];
  const { dispatcher, failures } = dispatch(
    t,
    inbox,
    ({ delivery: { id } }) => {
      attempts.push(id);
      return id === longId ? long.promise : undefined;
    },
    { lease: 90 },
  );
  const longId = await append(inbox);
  dispatcher.start();
  await waitFor('the long attempt to begin', () => attempts.length === 1);
  const id = await append(inbox);
  await waitFor('the other end to get lost', () => failures.length === 1);
  try {
    await waitFor(
      'the other job to be tried again',
      () => attempts.filter((each) => each === id).length > 1,
      600,
    );
  } finally {
    long.resolve();
    await dispatcher.stop(never);
  }
});

test('jobs of one key follow each other without a pause', {
  ...soon,
}, async (t) => {
  await using database = openDatabase('sqlite::memory:');
  const { dispatcher, settled } = dispatch(t, database.inbox, () => {}, { interval: 60_000 });
  const ids: string[] = [];
  for (let i = 0; i < 3; i++) ids.push(await append(database.inbox, 'key'));
  dispatcher.start();
  try {
    await waitFor('all to be settled', () => settled.length === 3, 500);
  } finally {
    await dispatcher.stop(never);
  }
  assert.deepEqual(
    settled.map(({ id }) => id),
    ids,
  );
});

test(
  'leased jobs of an ended process are done when its lease has ended, and that was no attempt',
  soon,
  async (t) => {
    await using database = openDatabase('sqlite::memory:');
    const ids = [await append(database.inbox), await append(database.inbox)];
    const now = Date.now();
    // Two processes die with both in hand; the second one had given the first job back.
    await database.inbox.claim('t', 2, 'gone 1', 0, { now });
    const [first] = await database.inbox.claim('t', 2, 'gone 2', 0, { now });
    assert.ok(first !== undefined);
    await database.inbox.settle(first, 'gone 2', { kind: 'released' }, now);
    const attempts: unknown[] = [];
    const { dispatcher, settled } = dispatch(
      t,
      database.inbox,
      ({ attempt, delivery: { id } }) => void attempts.push([id, attempt]),
      { maxAttempts: 1 },
    );
    dispatcher.start();
    await waitFor('both to be settled', () => settled.length === 2);
    await dispatcher.stop(never);
    const outcomes = ids.map((id) => settled.find((each) => each.id === id)?.outcome);
    assert.deepEqual(outcomes, ['done', 'done']);
    assert.deepEqual(
      attempts,
      ids.map((id) => [id, 1]),
    );
  },
);

test('while an attempt is under way its lease is renewed', soon, async (t) => {
  await using database = openDatabase('sqlite::memory:');
  const work = Promise.withResolvers<void>();
  let begun = false;
  const { dispatcher, settled } = dispatch(
    t,
    database.inbox,
    () => {
      begun = true;
      return work.promise;
    },
    { lease: 300, interval: 60_000 },
  );
  await append(database.inbox);
  dispatcher.start();
  await waitFor('the attempt to begin', () => begun);
  const firstEnd = Date.now() + 300;
  assert.deepEqual(await database.inbox.due(['t'], firstEnd), ['t'], 'a lease ends');
  await waitFor(
    'the lease to be renewed',
    async () => (await database.inbox.due(['t'], firstEnd)).length === 0,
  );
  work.resolve();
  await dispatcher.stop(never);
  assert.deepEqual(
    settled.map(({ outcome }) => outcome),
    ['done'],
  );
});

test(
  'an attempt that outlived its lease changes nothing for the process that has the job now',
  soon,
  async (t) => {
    await using database = openDatabase('sqlite::memory:');
    const work = Promise.withResolvers<void>();
    let begun = false;
    const { dispatcher, settled, lost } = dispatch(t, database.inbox, () => {
      begun = true;
      return work.promise;
    });
    const id = await append(database.inbox);
    dispatcher.start();
    await waitFor('the attempt to begin', () => begun);
    const later = Date.now() + 3_600_000;
    const [stolen] = await database.inbox.claim('t', 1, 'other', 60_000, { now: later });
    assert.ok(stolen);
    assert.deepEqual([stolen.attempt, stolen.crashes], [1, 1]);
    work.resolve();
    await dispatcher.stop(never);
    assert.deepEqual([settled, lost], [[], [id]]);
    assert.equal(await database.inbox.settle(stolen, 'other', { kind: 'done' }, later), true);
  },
);
