import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import type { Database } from '../database/database.ts';
import { openDatabase } from '../database/open-database.ts';
import { openLog } from '../observability/log.ts';
import { Dispatcher } from './dispatcher.ts';
import type { DeliveryHandler } from './handler.ts';

// Any order of deliveries, wakes, ends of handlers and restarts: each delivery is handled until it is settled,
// and never again.

const never = new AbortController().signal;
const silent = await openLog({ level: 'silent' });

interface AtWork {
  readonly id: string;
  end(error?: Error): void;
}

/** One process after the other on one inbox, and what has to hold at any moment. */
class World {
  readonly #database: Database;
  readonly #concurrency: number;
  #dispatcher: Dispatcher;
  readonly appended: string[] = [];
  /** By id: how it was settled; there is one outcome for each. */
  readonly settled = new Map<string, string>();
  atWork: AtWork[] = [];
  /** What broke, as a handler's own failure would be caught by the dispatcher. */
  readonly breaches: string[] = [];

  constructor(database: Database, concurrency: number) {
    this.#database = database;
    this.#concurrency = concurrency;
    this.#dispatcher = this.#process();
  }

  #process(): Dispatcher {
    const handle: DeliveryHandler = ({ id }, { signal }) => {
      if (this.settled.has(id)) this.breaches.push('handled again after it was settled');
      if (this.atWork.some((each) => each.id === id)) this.breaches.push('handled twice at the same time');
      if (this.atWork.length >= this.#concurrency) this.breaches.push('more handlers than allowed');
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const leave = () => {
        this.atWork = this.atWork.filter((each) => each !== entry);
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
      this.atWork.push(entry);
      return promise;
    };
    return new Dispatcher({
      inbox: this.#database.inbox,
      handlers: new Map([['event', handle]]),
      log: silent,
      concurrency: this.#concurrency,
      onSettled: ({ id }, outcome) => {
        if (this.settled.has(id)) this.breaches.push('settled twice');
        this.settled.set(id, outcome);
      },
    });
  }

  start(): Promise<void> {
    return this.#dispatcher.start();
  }

  async append(): Promise<void> {
    const id = randomUUIDv7();
    this.appended.push(id);
    const body = Buffer.from('{"event":"event"}');
    await this.#database.inbox.append({ id, event: 'event', body, receivedAt: 0, status: 'pending' });
  }

  wake(): void {
    this.#dispatcher.wake();
  }

  end(at: number, error?: Error): void {
    this.atWork[at % Math.max(1, this.atWork.length)]?.end(error);
  }

  /** Ends this process and begins the next one; a patient stop lets the handlers finish. */
  async restart(isPatient: boolean): Promise<void> {
    if (isPatient) {
      const stopping = this.#dispatcher.stop(never);
      let stopped = false;
      void stopping.then(() => {
        stopped = true;
      });
      while (!stopped) {
        for (const each of this.atWork) each.end();
        await nextTurn();
      }
    } else await this.#dispatcher.stop(AbortSignal.abort());
    this.atWork = [];
    this.#dispatcher = this.#process();
    await this.start();
  }

  /** Handles whatever is left; a wake lost on the way shows here as a delivery that nobody takes. */
  async finish(): Promise<void> {
    for (let turn = 0; this.settled.size < this.appended.length && turn < 1_000; turn++) {
      for (const each of this.atWork) each.end();
      await nextTurn();
    }
    await this.#dispatcher.stop(never);
  }
}

const step = fc.oneof(
  { weight: 4, arbitrary: fc.constant({ kind: 'append' as const }) },
  { weight: 2, arbitrary: fc.constant({ kind: 'append and wake' as const }) },
  { weight: 3, arbitrary: fc.constant({ kind: 'wake' as const }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('succeed' as const), at: fc.nat(5) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('fail' as const), at: fc.nat(5) }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('turns' as const), count: fc.integer({ min: 1, max: 4 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const), isPatient: fc.boolean() }) },
);

test('any sequence of events handles every delivery, none after it was settled, never too many at once', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      fc.array(step, { maxLength: 40 }),
      async (concurrency, steps) => {
        await using database = openDatabase('sqlite::memory:');
        const world = new World(database, concurrency);
        await world.start();
        for (const each of steps) {
          if (each.kind === 'append') await world.append();
          else if (each.kind === 'append and wake') {
            await world.append();
            world.wake();
          } else if (each.kind === 'wake') world.wake();
          else if (each.kind === 'succeed') world.end(each.at);
          else if (each.kind === 'fail') world.end(each.at, new Error('on purpose'));
          else if (each.kind === 'restart') await world.restart(each.isPatient);
          else for (let i = 0; i < each.count; i++) await nextTurn();
          assert.deepEqual(world.breaches, []);
        }
        // Whatever came before it, one wake is enough for all that waits.
        world.wake();
        await world.finish();
        assert.deepEqual(world.breaches, []);
        assert.deepEqual([...world.settled.keys()].sort(), world.appended.toSorted(), 'none is lost');
        assert.equal(await database.inbox.recover(), 0, 'none is left in hand');
        assert.deepEqual(await database.inbox.claim(1_000), [], 'none waits');
      },
    ),
    { numRuns: 150 },
  );
});
