import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { waitFor } from '../../../test/support/wait-for.ts';
import type { Database } from '../../sql/database.ts';
import { openDatabase } from '../../sql/open.ts';
import type { ClaimedJob } from '../delivery.ts';
import { Dispatcher } from './dispatcher.ts';
import { HandlingShare } from './handling-share.ts';
import { AttemptError, type Target } from './target.ts';

type DispatcherOptions = ConstructorParameters<typeof Dispatcher>[0];

const never = new AbortController().signal;
const RECEIVED = 1_700_000_000_000;
const soon = { timeout: 300_000 };

/** A dispatcher of one target over a real inbox, with what it reported. */
function dispatch(
  t: TestContext,
  { inbox }: Pick<Database, 'inbox'>,
  run: Target['run'],
  { target = {}, ...options }: Partial<DispatcherOptions> & { readonly target?: Partial<Target> } = {},
) {
  const settled: { readonly id: string; readonly outcome: string; readonly error: unknown }[] = [];
  const lost: string[] = [];
  const failures: unknown[] = [];
  const backoff = { base: 0, cap: 0 };
  const dispatcher = new Dispatcher({
    inbox,
    targets: [{ name: 't', run, concurrency: 16, timeout: 60_000, maxAttempts: 3, backoff, ...target }],
    events: {
      settled: ({ delivery: { id } }, outcome, error) => settled.push({ id, outcome, error }),
      leaseLost: ({ delivery: { id } }) => lost.push(id),
      overdue: () => {},
      storeFailed: (error) => failures.push(error),
    },
    interval: 5,
    ...options,
  });
  // However a test ends, its timers do.
  t.after(() => dispatcher.stop(AbortSignal.abort()), { timeout: 1_000 });
  return { dispatcher, settled, lost, failures };
}

async function append({ inbox }: Pick<Database, 'inbox'>, target = 't', orderKey: string | null = null) {
  const id = randomUUIDv7();
  const [event, contentType, dedupKey] = ['paid', 'application/json', null];
  const body = Buffer.from('{"event":"paid","data":1e400}');
  const delivery = {
    id,
    source: '',
    event,
    dataPointer: '/data',
    contentType,
    body,
    receivedAt: RECEIVED,
    dedupKey,
  };
  await inbox.append({ ...delivery, jobs: [{ target, orderKey }] });
  return id;
}

/** The jobs that another process could claim now. */
const claimable = ({ inbox }: Database) => {
  const now = Date.now();
  return inbox.claim('t', 1_000, 'other', 60_000, { now });
};

/** A target that takes as long as the test wants. */
function slow() {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const state = {
    begun: 0,
    signal: undefined as AbortSignal | undefined,
    finish: resolve,
    fail: reject,
    run: (_job: ClaimedJob, signal: AbortSignal) => {
      state.begun++;
      state.signal = signal;
      return promise;
    },
  };
  return state;
}

test('a target gets its job with the delivery as it was stored', async (t) => {
  await using database = openDatabase('sqlite::memory:');
  const seen: ClaimedJob[] = [];
  const { dispatcher, settled } = dispatch(t, database, (job) => void seen.push(job));
  const id = await append(database);
  dispatcher.start();
  await waitFor('the job to be settled', () => settled.length === 1);
  const [{ delivery, target, attempt } = {}] = seen;
  assert.deepEqual([target, attempt, delivery?.id, delivery?.event], ['t', 1, id, 'paid']);
  assert.deepEqual([delivery?.receivedAt, delivery?.dataPointer], [RECEIVED, '/data']);
  assert.equal(Buffer.from(delivery?.body ?? []).toString(), '{"event":"paid","data":1e400}');
  assert.deepEqual(settled, [{ id, outcome: 'done', error: undefined }]);
  await dispatcher.stop(never);
  assert.deepEqual(await claimable(database), []);
});

test('an attempt that throws at once fails like one that rejects, and is made again until there were too many', async (t) => {
  await using database = openDatabase('sqlite::memory:');
  const error = new Error('no');
  const attempts: number[] = [];
  const { dispatcher, settled } = dispatch(t, database, ({ attempt }) => {
    attempts.push(attempt);
    if (attempt === 1) throw error;
    return Promise.reject(error);
  });
  const id = await append(database);
  dispatcher.start();
  await waitFor('the job to be given up', () => settled.length === 3);
  await dispatcher.stop(never);
  assert.deepEqual(attempts, [1, 2, 3]);
  assert.deepEqual(
    settled,
    ['retry', 'retry', 'dead'].map((outcome) => ({ id, outcome, error })),
  );
  assert.deepEqual(await database.inbox.backlog(), { open: 0, dead: 1, oldestAt: undefined });
  const found = await database.deliveries.find(id);
  assert.deepEqual([found?.status, found?.jobs[0]?.error], ['dead', 'Error: no']);
});

test('whatever is thrown is a failed attempt', async (t) => {
  await using database = openDatabase('sqlite::memory:');
  const thrown = [undefined, null, 'text', Symbol('s'), { a: 1 }, 0];
  const { dispatcher, settled, failures } = dispatch(
    t,
    database,
    () => {
      throw thrown[settled.length];
    },
    { target: { maxAttempts: thrown.length, concurrency: 1 } },
  );
  await append(database);
  dispatcher.start();
  await waitFor('the job to be given up', () => settled.length === thrown.length, 2_000);
  await dispatcher.stop(never);
  assert.deepEqual(
    settled.map(({ error }) => error),
    thrown,
  );
  assert.deepEqual(failures, []);
});

test('an error that cannot be turned into text is a failed attempt too', async (t) => {
  await using database = openDatabase('sqlite::memory:');
  const { dispatcher, settled, failures } = dispatch(t, database, () => {
    throw Object.create(null);
  });
  await append(database);
  dispatcher.start();
  await waitFor('an end to be told', () => settled.length + failures.length > 0);
  assert.deepEqual([settled[0]?.outcome, failures], ['retry', []]);
});

test('a target can end the attempts of its job at once', async (t) => {
  await using database = openDatabase('sqlite::memory:');
  const { dispatcher, settled } = dispatch(t, database, () =>
    Promise.reject(new AttemptError('gone', 'never')),
  );
  await append(database);
  dispatcher.start();
  await waitFor('the job to be given up', () => settled.length === 1);
  await dispatcher.stop(never);
  assert.equal(settled[0]?.outcome, 'dead');
});

test('a target that says when to come again is asked no earlier', async (t) => {
  await using database = openDatabase('sqlite::memory:');
  const { dispatcher, settled } = dispatch(t, database, () =>
    Promise.reject(new AttemptError('busy', 3_600_000)),
  );
  await append(database);
  const before = Date.now();
  dispatcher.start();
  await waitFor('the attempt to be settled', () => settled.length === 1);
  await dispatcher.stop(never);
  assert.equal(settled[0]?.outcome, 'retry');
  assert.deepEqual(await database.inbox.due(['t'], before + 3_599_000), []);
  assert.deepEqual(await database.inbox.due(['t'], Date.now() + 3_600_000), ['t']);
});

test('an attempt that times out is aborted and counts as failed, even if it ignores the signal', async (t) => {
  await using database = openDatabase('sqlite::memory:');
  const work = slow();
  const { dispatcher, settled } = dispatch(t, database, work.run, {
    target: { timeout: 20, maxAttempts: 1 },
  });
  await append(database);
  dispatcher.start();
  await waitFor('the attempt to be cut', () => settled.length === 1);
  await dispatcher.stop(never);
  assert.equal(settled[0]?.outcome, 'dead');
  assert.match(String(settled[0]?.error), /longer than 20 ms/);
  assert.equal(work.signal?.aborted, true);
});

test('a stop waits for the attempts under way and claims nothing more', soon, async (t) => {
  await using database = openDatabase('sqlite::memory:');
  const work = slow();
  const { dispatcher, settled } = dispatch(t, database, work.run);
  const id = await append(database);
  dispatcher.start();
  await waitFor('the attempt to begin', () => work.begun === 1);
  let stopped = false;
  const stopping = dispatcher.stop(never).then(() => {
    stopped = true;
  });
  const late = await append(database);
  dispatcher.wake('t');
  assert.deepEqual(
    (await claimable(database)).map(({ delivery }) => delivery.id),
    [late],
  );
  assert.equal(stopped, false);
  assert.equal(work.signal?.aborted, false);
  work.finish();
  await stopping;
  assert.deepEqual(settled, [{ id, outcome: 'done', error: undefined }]);
  assert.equal(work.begun, 1);
});

const unwilling: Readonly<Record<string, Target['run']>> = {
  'that rejects when it is told to end': (_job, signal) =>
    new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('told')))),
  'that does not listen': () => new Promise(() => {}),
};

for (const [kind, run] of Object.entries(unwilling)) {
  test(`at the deadline an attempt ${kind} is told, and its job is given back uncounted`, soon, async (t) => {
    await using database = openDatabase('sqlite::memory:');
    let signal: AbortSignal | undefined;
    const { dispatcher, settled, lost, failures } = dispatch(t, database, (job, given) => {
      signal = given;
      return run(job, given, () => {});
    });
    await append(database);
    dispatcher.start();
    await waitFor('the attempt to begin', () => signal);
    const deadline = new AbortController();
    const stopping = dispatcher.stop(deadline.signal);
    assert.equal(signal?.aborted, false);
    deadline.abort();
    assert.equal(signal?.aborted, true);
    await stopping;
    assert.deepEqual(
      settled.map(({ outcome }) => outcome),
      ['released'],
    );
    assert.deepEqual([lost, failures], [[], []]);
    assert.deepEqual(
      (await claimable(database)).map(({ attempt }) => attempt),
      [1],
    );
  });
}

test('a stop after its deadline releases the jobs of a claim in flight', soon, async (t) => {
  await using database = openDatabase('sqlite::memory:');
  const work = slow();
  const { dispatcher } = dispatch(t, database, work.run);
  const ids = [await append(database), await append(database)];
  dispatcher.start();
  dispatcher.wake('t');
  await dispatcher.stop(AbortSignal.abort());
  assert.deepEqual(
    (await claimable(database)).map(({ delivery }) => delivery.id),
    ids,
  );
  assert.equal(work.begun, 0);
});

test('one poll wakes each target that has a due job', async (t) => {
  await using database = openDatabase('sqlite::memory:');
  const done: string[] = [];
  const run = ({ target }: ClaimedJob) => void done.push(target);
  const limits = { concurrency: 1, timeout: 60_000, maxAttempts: 3, backoff: { base: 0, cap: 0 } };
  const names = ['a', 'b', 'c'];
  for (const name of names) await append(database, name);
  const { dispatcher } = dispatch(t, database, run, {
    targets: names.map((name) => ({ name, run, ...limits })),
    interval: 3_600_000,
  });
  dispatcher.start();
  await waitFor('all to be handled', () => done.length === 3);
  await dispatcher.stop(never);
  assert.deepEqual(done.toSorted(), names);
});

test('while a dispatcher acknowledges all of the time its targets have a share, and all of it afterwards', async (t) => {
  await using database = openDatabase('sqlite::memory:');
  // As if the event loop was never idle.
  const share = new HandlingShare({ now: () => performance.now(), idle: () => 0 });
  const { dispatcher, settled } = dispatch(t, database, () => {}, { share });
  dispatcher.start();
  let given = 0;
  await waitFor('the least share', async () => {
    for (let i = 0; i < 20; i++) {
      const body = Buffer.from('{}');
      const fields = { id: randomUUIDv7(), source: '', event: 'e', dataPointer: '', contentType: null, body };
      const jobs = [{ target: 't', orderKey: null }];
      await dispatcher.append({ ...fields, receivedAt: Date.now(), dedupKey: null, jobs });
      given++;
    }
    return dispatcher.share === 1 / 4;
  });
  await waitFor('all to be handled', () => settled.length === given);
  await append(database);
  await waitFor('all of the time', () => {
    dispatcher.wake('t');
    return dispatcher.share === 1;
  });
  await dispatcher.stop(never);
});

test('a job of a target that is not there waits for a process that has it', async (t) => {
  await using database = openDatabase('sqlite::memory:');
  const first = dispatch(t, database, () => {});
  const id = await append(database, 'later');
  first.dispatcher.start();
  first.dispatcher.wake('later');
  await append(database);
  await waitFor('the other job to be settled', () => first.settled.length === 1);
  await first.dispatcher.stop(never);
  const second = dispatch(t, database, () => {}, { target: { name: 'later' } });
  second.dispatcher.start();
  await waitFor('the job to be settled', () => second.settled.length === 1);
  await second.dispatcher.stop(never);
  assert.equal(second.settled[0]?.id, id);
});
