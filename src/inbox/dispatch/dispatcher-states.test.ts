import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { rounds } from '../../../test/support/proof-settings.ts';
import type { Database } from '../../sql/database.ts';
import { openDatabase } from '../../sql/open.ts';
import type { ClaimedJob } from '../delivery.ts';
import { Dispatcher } from './dispatcher.ts';

// Any order of deliveries, wakes, ends of attempts, stops and crashes of processes: each job is tried until it is
// settled, and never again.

const never = new AbortController().signal;
const MAX_ATTEMPTS = 3;
/** Nothing in here waits for a clock: leases do not end, and nobody looks by himself. */
const LONG = 3_600_000;

interface AtWork {
  readonly id: string;
  end(error?: Error): void;
}

/** One process after the other on one inbox, and what has to hold at any moment. */
class World {
  readonly #database: Database;
  readonly #concurrency: number;
  #dispatcher: Dispatcher;
  #atWork: AtWork[] = [];
  /** By id: the attempts that count. */
  readonly #attempts = new Map<string, number>();
  readonly #settled = new Map<string, string>();
  /** Noted here, as what an attempt throws is only a failed attempt. */
  readonly breaches: string[] = [];

  constructor(database: Database, concurrency: number) {
    this.#database = database;
    this.#concurrency = concurrency;
    this.#dispatcher = this.#process();
  }

  #process(): Dispatcher {
    const dispatcher = new Dispatcher({
      inbox: this.#database.inbox,
      targets: [
        {
          name: 't',
          run: (job, signal) => this.#attempt(job, signal),
          concurrency: this.#concurrency,
          timeout: LONG,
          maxAttempts: MAX_ATTEMPTS,
          backoff: { base: 0, cap: 0 },
        },
      ],
      events: {
        settled: (job, outcome) => this.#onSettled(job, outcome),
        leaseLost: () => this.breaches.push('a lease was lost'),
        overdue: () => this.breaches.push('an attempt went on'),
        storeFailed: (error) => this.breaches.push(`the store failed: ${error}`),
      },
      lease: LONG,
      interval: LONG,
    });
    dispatcher.start();
    return dispatcher;
  }

  #attempt({ attempt, delivery: { id } }: ClaimedJob, signal: AbortSignal): Promise<void> {
    const count = (this.#attempts.get(id) ?? 0) + 1;
    this.#attempts.set(id, count);
    this.#check(attempt === count, `attempt ${count} has the number ${attempt}`);
    this.#check(count <= MAX_ATTEMPTS, 'one attempt too many');
    this.#check(!this.#settled.has(id), 'tried again after it was settled');
    this.#check(!this.#atWork.some((each) => each.id === id), 'tried twice at the same time');
    this.#check(this.#atWork.length < this.#concurrency, 'more attempts than allowed');
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const leave = () => {
      this.#atWork = this.#atWork.filter((each) => each !== entry);
    };
    const entry: AtWork = {
      id,
      end(error) {
        leave();
        if (error === undefined) resolve();
        else reject(error);
      },
    };
    signal.addEventListener('abort', leave);
    this.#atWork.push(entry);
    return promise;
  }

  #onSettled({ attempt, delivery: { id } }: ClaimedJob, outcome: string): void {
    if (outcome === 'released') this.#attempts.set(id, attempt - 1);
    if (outcome === 'dead') this.#check(attempt >= MAX_ATTEMPTS, 'given up too early');
    if (outcome !== 'done' && outcome !== 'dead') return;
    this.#check(!this.#settled.has(id), 'settled twice');
    this.#settled.set(id, outcome);
  }

  #check(holds: boolean, breach: string): void {
    if (!holds) this.breaches.push(breach);
  }

  readonly appended: string[] = [];

  get settled(): readonly string[] {
    return [...this.#settled.keys()];
  }

  async append(): Promise<void> {
    const id = randomUUIDv7();
    this.appended.push(id);
    const [source, event, dataPointer, contentType, dedupKey] = ['', 'e', '/data', null, null];
    const body = Buffer.from('{}');
    const delivery = { id, source, event, dataPointer, contentType, body, receivedAt: 0, dedupKey };
    await this.#database.inbox.append({ ...delivery, jobs: [{ target: 't', orderKey: null }] });
  }

  wake(): void {
    this.#dispatcher.wake('t');
  }

  end(at: number, error?: Error): void {
    this.#atWork[at % Math.max(1, this.#atWork.length)]?.end(error);
  }

  /** A process takes jobs and dies before it can do anything; its leases end at once. */
  async die(count: number): Promise<void> {
    const [now, owner] = [Date.now(), randomUUIDv7()];
    const jobs = await this.#database.inbox.claim('t', count, owner, 0, { now });
    for (const job of jobs) {
      this.#attempts.set(job.delivery.id, job.attempt - 1);
      // It would be a quarantined job after another crash, which only a poll finds.
      if (job.crashes > 0) await this.#database.inbox.settle(job, owner, { kind: 'released' });
    }
  }

  /** Ends this process and begins the next one; a patient stop lets the attempts finish. */
  async restart(isPatient: boolean): Promise<void> {
    await this.stop(isPatient);
    this.#dispatcher = this.#process();
  }

  async stop(isPatient: boolean): Promise<void> {
    let stopped = false;
    const stopping = this.#dispatcher.stop(isPatient ? never : AbortSignal.abort()).then(() => {
      stopped = true;
    });
    while (!stopped) {
      for (const each of this.#atWork) each.end();
      await nextTurn();
    }
    await stopping;
  }

  /** Lets everything succeed that begins, for as long as something does. */
  async finish(): Promise<void> {
    for (let turn = 0; this.#settled.size < this.appended.length && turn < 1_000; turn++) {
      for (const each of this.#atWork) each.end();
      await nextTurn();
    }
  }
}

const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('append' as const), wakes: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('wake' as const) }) },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant('end' as const), at: fc.nat(5), fails: fc.boolean() }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('turns' as const), count: fc.integer({ min: 1, max: 4 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const), isPatient: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('die' as const), count: fc.integer({ min: 1, max: 3 }) }),
  },
);

/** Room for one more where two would fit if nothing ran. */
const ONE_AT_WORK_TWO_WAIT = [
  { kind: 'append' as const, wakes: true },
  { kind: 'turns' as const, count: 4 },
  { kind: 'append' as const, wakes: false },
  { kind: 'append' as const, wakes: true },
  { kind: 'turns' as const, count: 4 },
];

test('any sequence of events settles every job once, none is lost, and never too many run at once', async () => {
  const concurrencies = fc.integer({ min: 1, max: 4 });
  await fc.assert(
    fc.asyncProperty(concurrencies, fc.array(step, { maxLength: 40 }), async (concurrency, steps) => {
      await using database = openDatabase('sqlite::memory:');
      const world = new World(database, concurrency);
      try {
        for (const each of steps) {
          if (each.kind === 'append') {
            await world.append();
            if (each.wakes) world.wake();
          } else if (each.kind === 'wake') world.wake();
          else if (each.kind === 'end') world.end(each.at, each.fails ? new Error('on purpose') : undefined);
          else if (each.kind === 'restart') await world.restart(each.isPatient);
          else if (each.kind === 'die') await world.die(each.count);
          else for (let i = 0; i < each.count; i++) await nextTurn();
          assert.deepEqual(world.breaches, []);
        }
        // What has failed is recorded; from here on one wake is enough for all that waits.
        for (let i = 0; i < 10; i++) await nextTurn();
        world.wake();
        await world.finish();
      } finally {
        await world.stop(true);
      }
      assert.deepEqual(world.breaches, []);
      assert.deepEqual(world.settled.toSorted(), world.appended.toSorted(), 'none is lost');
      assert.equal((await database.inbox.backlog()).open, 0);
    }),
    { numRuns: rounds(200), examples: [[2, ONE_AT_WORK_TWO_WAIT]] },
  );
});
